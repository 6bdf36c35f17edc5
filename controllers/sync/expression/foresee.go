/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package expression

import (
	"fmt"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// foreseen says what calls cost that can make very much of very little. CEL counts the cost of a call when it is done,
// and then lists.range(1000000000) has taken all memory.
var foreseen = map[string]func(args []ref.Val) float64{
	"lists.range": func(args []ref.Val) float64 { return whole(args[0]) },
	"distinct":    func(args []ref.Val) float64 { return math.Pow(items(args[0]), 2) },
	"flatten":     func(args []ref.Val) float64 { return textSize(args[0], valueSize*costLimit) / valueSize },
	"format":      func(args []ref.Val) float64 { return traversal(textSize(args[1], maxText)) },
	"join": func(args []ref.Val) float64 {
		size := textSize(args[0], maxText)
		if len(args) > 1 {
			size += items(args[0]) * float64(len(text(args[1])))
		}
		return traversal(size)
	},
	"replace": func(args []ref.Val) float64 {
		original, old, replacement := text(args[0]), text(args[1]), text(args[2])
		return traversal(float64(len(original)) + float64(strings.Count(original, old))*float64(len(replacement)))
	},
}

// The arguments of a call can be of any type: those that do not fit cost nothing, because CEL refuses them.

func whole(value ref.Val) float64 {
	number, _ := value.(types.Int)
	return float64(number)
}

func text(value ref.Val) string {
	content, _ := value.(types.String)
	return string(content)
}

func items(value ref.Val) float64 {
	if list, ok := value.(traits.Lister); ok {
		return whole(list.Size())
	}
	return 0
}

// maxText is the length of the longest text that the cost limit allows.
const maxText = costLimit / common.StringTraversalCostFactor

// traversal is what CEL charges for going through a text.
func traversal(size float64) float64 { return size * common.StringTraversalCostFactor }

// textSize is about how long a value is when it is written out. It stops counting at the limit.
func textSize(value ref.Val, limit float64) float64 {
	size := float64(valueSize)
	switch typed := value.(type) {
	case types.String:
		size += float64(len(typed))
	case types.Bytes:
		size += float64(len(typed))
	case traits.Mapper:
		for it := typed.Iterator(); size <= limit && it.HasNext() == types.True; {
			key := it.Next()
			size += textSize(key, limit-size) + textSize(typed.Get(key), limit-size)
		}
	case traits.Lister:
		for it := typed.Iterator(); size <= limit && it.HasNext() == types.True; {
			size += textSize(it.Next(), limit-size)
		}
	}
	return size
}

// foresee replaces the functions of an environment whose cost can be foreseen by ones that refuse to begin what would
// cost too much.
func foresee(env *cel.Env) ([]cel.EnvOption, error) {
	var options []cel.EnvOption
	for name, cost := range foreseen {
		declared, ok := env.Functions()[name]
		if !ok {
			return nil, fmt.Errorf("there is no function %s", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		calls := map[string]*functions.Overload{}
		for _, binding := range bindings {
			calls[binding.Operator] = binding
		}
		var overloads []cel.FunctionOpt
		for _, overload := range declared.OverloadDecls() {
			declare := cel.Overload
			if overload.IsMemberFunction() {
				declare = cel.MemberOverload
			}
			overloads = append(overloads, declare(overload.ID(), overload.ArgTypes(), overload.ResultType(),
				cel.FunctionBinding(refusing(name, cost, calls[overload.ID()]))))
		}
		options = append(options, cel.Function(name, overloads...))
	}
	return options, nil
}

func refusing(name string, cost func(args []ref.Val) float64, call *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		if cost(args) > costLimit {
			return types.NewErr("%s would exceed the cost limit", name)
		}
		switch {
		case len(args) == 1 && call.Unary != nil:
			return call.Unary(args[0])
		case len(args) == 2 && call.Binary != nil:
			return call.Binary(args[0], args[1])
		default:
			return call.Function(args...)
		}
	}
}
