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
	"cmp"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// sortedFunction is the name of the function that sorts the range of a loop. No expression can contain this name. CEL iterates
// over a map in random order, so self.map(key, key) would return a list in another order each time.
const sortedFunction = "@inOrder"

func sortedFunctionOption() cel.EnvOption {
	anyType := cel.TypeParamType("A")
	return cel.Function(sortedFunction, cel.Overload("in_order", []*cel.Type{anyType}, anyType, cel.UnaryBinding(sortedMap)))
}

// sortLoops makes each loop of a parsed expression iterate in order.
func sortLoops(parsed *ast.AST) {
	factory, next := ast.NewExprFactory(), ast.MaxID(parsed)
	visitor := ast.NewExprVisitor(func(expr ast.Expr) {
		if expr.Kind() != ast.ComprehensionKind {
			return
		}
		loop := expr.AsComprehension()
		next++
		if place, ok := parsed.SourceInfo().GetOffsetRange(loop.IterRange().ID()); ok {
			parsed.SourceInfo().SetOffsetRange(next, place)
		}
		expr.SetKindCase(factory.NewComprehensionTwoVar(expr.ID(), factory.NewCall(next, sortedFunction, loop.IterRange()),
			loop.IterVar(), loop.IterVar2(), loop.AccuVar(), loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result()))
	})
	ast.PostOrderVisit(parsed.Expr(), visitor)
}

// sortedMap returns a map that iterates in the order of its keys, and any other value as it is.
func sortedMap(value ref.Val) ref.Val {
	fields, ok := value.(traits.Mapper)
	if !ok {
		return value
	}
	result := sortedMapValue{Mapper: fields}
	for it := fields.Iterator(); it.HasNext() == types.True; {
		result.keys = append(result.keys, it.Next())
	}
	slices.SortFunc(result.keys, compareKeys)
	return result
}

func compareKeys(a, b ref.Val) int {
	if byType := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); byType != 0 {
		return byType
	}
	if comparer, ok := a.(traits.Comparer); ok {
		if result, ok := comparer.Compare(b).(types.Int); ok {
			return int(result)
		}
	}
	return 0
}

// sortedMapValue is a map with sorted keys.
type sortedMapValue struct {
	traits.Mapper
	keys []ref.Val
}

func (m sortedMapValue) Iterator() traits.Iterator {
	return types.NewRefValList(types.DefaultTypeAdapter, m.keys).Iterator()
}
