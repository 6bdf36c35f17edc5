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
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// callGuards reports whether a call of a function may be made, by the size of its arguments. The results of these functions can
// be far larger than their arguments. CEL counts the cost only after the call, when lists.range(1000000000) has already taken all
// memory.
var callGuards = map[string]func(args []ref.Val) bool{
	"lists.range": func(args []ref.Val) bool { return intValue(args[0]) <= maxSize/valueSize },
	"distinct":    func(args []ref.Val) bool { return listLength(args[0]) <= maxUniq },
	"flatten":     func(args []ref.Val) bool { return textSize(args[0], maxSize) <= maxSize },
	"format":      func(args []ref.Val) bool { return textSize(args[1], maxSize) <= maxSize },
	"join": func(args []ref.Val) bool {
		size := textSize(args[0], maxSize)
		if size <= maxSize && len(args) > 1 {
			size += listLength(args[0]) * len(stringValue(args[1]))
		}
		return size <= maxSize
	},
	"replace": func(args []ref.Val) bool {
		original, old, replacement := stringValue(args[0]), stringValue(args[1]), stringValue(args[2])
		return len(original)+strings.Count(original, old)*len(replacement) <= maxSize
	},
}

// Arguments can have any type. An argument of a wrong type counts as 0, because CEL refuses the call anyway.

func intValue(value ref.Val) int {
	number, _ := value.(types.Int)
	return int(number)
}

func stringValue(value ref.Val) string {
	content, _ := value.(types.String)
	return string(content)
}

func listLength(value ref.Val) int {
	if list, ok := value.(traits.Lister); ok {
		return intValue(list.Size())
	}
	return 0
}

// textSize returns the approximate length of a value as text, in bytes. It stops counting at the limit.
func textSize(value ref.Val, limit int) int {
	size := valueSize
	switch typed := value.(type) {
	case types.String:
		size += len(typed)
	case types.Bytes:
		size += len(typed)
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

// guardFunctions wraps the functions of an environment that have a guard. A wrapped function fails if its guard refuses the call.
func guardFunctions(env *cel.Env) ([]cel.EnvOption, error) {
	var options []cel.EnvOption
	for name, mayCall := range callGuards {
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
				cel.FunctionBinding(guardedCall(name, mayCall, calls[overload.ID()]))))
		}
		options = append(options, cel.Function(name, overloads...))
	}
	return options, nil
}

func guardedCall(name string, mayCall func(args []ref.Val) bool, call *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		if !mayCall(args) {
			return types.NewErr("%s would yield too much or take too long", name)
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
