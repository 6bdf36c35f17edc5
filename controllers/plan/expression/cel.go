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
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// costLimit is the limit of API servers for one evaluation of one rule, about 0.1 s.
	costLimit = celconfig.PerCallLimit
	// checkFrequency is the number of iterations of a loop after which an evaluation checks its context, as in API servers.
	checkFrequency = celconfig.CheckFrequency
	// timeLimit is a hundred times the duration that costLimit allows. The other limits should end an evaluation much earlier.
	timeLimit = 10 * time.Second
)

// Expression is a compiled CEL expression. It is immutable and safe for concurrent use.
type Expression struct {
	program cel.Program
	uses    []string
	isBool  bool
}

// CompileCEL compiles an expression over variables of any type. Its error states the line and column of each mistake.
func CompileCEL(text string, variables ...string) (*Expression, error) {
	env, err := environmentFor(variables)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare CEL for the variables %s: %w", strings.Join(variables, ", "), err)
	}
	checked, err := check(env, text)
	if err != nil {
		return nil, fmt.Errorf("not a valid CEL expression: %w", err)
	}
	program, err := env.Program(checked, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(checkFrequency))
	if err != nil {
		return nil, fmt.Errorf("not a usable CEL expression: %w", err)
	}
	output := checked.OutputType()
	return &Expression{
		program: program,
		uses:    variablesOf(checked, variables),
		isBool:  output.IsExactType(cel.BoolType) || output.IsExactType(cel.DynType),
	}, nil
}

func check(env *cel.Env, text string) (*cel.Ast, error) {
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	sortLoops(parsed.NativeRep())
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		if strings.Contains(err.Error(), "expected type '") {
			return nil, fmt.Errorf(`%w (values of different types in one list or map need dyn, as in {"port": dyn(80), "name": dyn("http")})`, err)
		}
		return nil, err
	}
	return checked, nil
}

// environments holds the environments by their variables: one for each place in the code that compiles expressions.
var environments sync.Map

// environmentFor returns the environment of Kubernetes with the variables. It creates an environment once, because creation
// takes longer than compilation.
func environmentFor(variables []string) (*cel.Env, error) {
	key := strings.Join(variables, " ")
	if env, ok := environments.Load(key); ok {
		return env.(*cel.Env), nil
	}
	// The environment of stored expressions has all functions of this release of Kubernetes. The environment of new expressions
	// lacks the functions that the previous release did not have, for downgrades.
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	options, err := guardFunctions(base)
	if err != nil {
		return nil, err
	}
	options = append(options, sortedFunctionOption())
	for _, variable := range variables {
		options = append(options, cel.Variable(variable, cel.DynType))
	}
	env, err := base.Extend(options...)
	if err != nil {
		return nil, err
	}
	kept, _ := environments.LoadOrStore(key, env)
	return kept.(*cel.Env), nil
}

// variablesOf returns the variables that an expression refers to.
func variablesOf(checked *cel.Ast, variables []string) []string {
	var used []string
	visitor := ast.NewExprVisitor(func(expr ast.Expr) {
		if expr.Kind() == ast.IdentKind && slices.Contains(variables, expr.AsIdent()) {
			used = append(used, expr.AsIdent())
		}
	})
	ast.PreOrderVisit(checked.NativeRep().Expr(), visitor)
	slices.Sort(used)
	return slices.Compact(used)
}

// Uses reports whether the expression refers to a variable.
func (e *Expression) Uses(variable string) bool { return slices.Contains(e.uses, variable) }

// ReturnsBool reports whether the result is a boolean, or has a type that is known only after an evaluation.
func (e *Expression) ReturnsBool() bool { return e.isBool }

// Evaluate returns the result as a JSON value: nil, bool, int64, float64, string, []any or map[string]any. The result shares no
// memory with the variables. Evaluate does not change them.
func (e *Expression) Evaluate(variables map[string]any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	return e.evaluate(ctx, variables)
}

func (e *Expression) evaluate(ctx context.Context, variables map[string]any) (any, error) {
	result, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return nil, fmt.Errorf("cannot evaluate the expression: %w", err)
	}
	return toJSON(result)
}
