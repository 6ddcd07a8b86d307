package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Operation is what takes effect at one moment: a command, a script or a transaction.
type Operation []Command

// Unknown stands for the replies of an operation that the server was killed in.
var Unknown []string

// History has the operations of one group between two moments at which nothing was in flight.
type History struct {
	group      *Group
	lock       sync.Mutex
	initial    State
	operations []porcupine.Operation
}

// Add records an operation, with the texts of its replies or Unknown.
func (h *History) Add(client int, called, returned time.Duration, operation Operation, replies []string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: client,
		Input:    operation,
		Call:     int64(called),
		Output:   replies,
		Return:   int64(returned),
	})
}

// Close ends the operations without an outcome at the moment when the server has recovered: a server that is dead
// cannot execute them later.
func (h *History) Close(recovered time.Duration) (unknown int) {
	for i := range h.operations {
		if h.operations[i].Output.([]string) == nil {
			h.operations[i].Return = int64(recovered)
			unknown++
		}
	}
	return unknown
}

func (g *Group) step(state State, operation Operation) (State, []string) {
	next := slices.Clone(state)
	texts := make([]string, len(operation))
	for i, command := range operation {
		texts[i] = g.Apply(next, command)
	}
	return next, texts
}

// Check says whether the operations can have taken effect one after another, each between call and return, and those
// of unknown outcome then or never.
func (h *History) Check(limit time.Duration) (porcupine.CheckResult, porcupine.LinearizationInfo, porcupine.Model) {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{h.initial} },
		Step: func(state, input, output any) []any {
			next, texts := h.group.step(state.(State), input.(Operation))
			replies := output.([]string)
			if replies == nil {
				if input.(Operation)[0].verb == "unchanged" && texts[0] == "0" {
					return []any{state}
				}
				return []any{state, next}
			}
			if slices.Equal(texts, replies) {
				return []any{next}
			}
			return nil
		},
		Equal:             func(one, other any) bool { return slices.Equal(one.(State), other.(State)) },
		DescribeOperation: func(input, output any) string { return Describe(input.(Operation), output.([]string)) },
		DescribeState:     func(state any) string { return strings.Join(state.(State), " | ") },
	}
	model := nondeterministic.ToModel()
	result, information := porcupine.CheckOperationsVerbose(model, h.operations, limit)
	return result, information, model
}

func Describe(operation Operation, replies []string) string {
	parts := make([]string, len(operation))
	for i, c := range operation {
		parts[i] = fmt.Sprintf("%s %d.%d", c.verb, c.key, c.field)
		for _, word := range []string{c.expected, c.value} {
			if word != "" {
				parts[i] += " " + word
			}
		}
	}
	outcome := "unknown"
	if replies != nil {
		outcome = strings.Join(replies, "; ")
	}
	return strings.Join(parts, "; ") + " → " + outcome
}

func (h *History) line(i int) string {
	o := h.operations[i]
	return fmt.Sprintf("%d %d %d %s", o.Call, o.Return, o.ClientId, Describe(o.Input.(Operation), o.Output.([]string)))
}
