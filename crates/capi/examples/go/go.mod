module example.com/alluvium-example

go 1.21
