(function () {
  var tip = document.getElementById("tip");
  function show(mark, x, y) {
    tip.textContent = mark.querySelector("title").textContent;
    tip.style.visibility = "visible";
    var left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    var top = y + 16 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 16;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(8, top) + "px";
  }
  function hide() { tip.style.visibility = "hidden"; }
  document.querySelectorAll(".tipped").forEach(function (mark) {
    mark.addEventListener("pointermove", function (event) { show(mark, event.clientX, event.clientY); });
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", function () {
      var box = mark.getBoundingClientRect();
      show(mark, box.right, box.bottom);
    });
    mark.addEventListener("blur", hide);
  });
})();
