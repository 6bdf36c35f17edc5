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
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

// Template is a parsed Go template. It is immutable and safe for concurrent use.
type Template struct {
	uses    []string
	usesAll bool
	// executors are reused: each serves one rendering at a time.
	executors sync.Pool
}

// executor renders with its own meter, because the functions of a template do not know which rendering calls them.
type executor struct {
	template *template.Template
	meter    *meter
}

// templateName is the name of every template in error messages, before line and column.
const templateName = "text"

// ParseTemplate parses a template in the language of text/template, without template definitions. The variables are fields of the
// dot. [Functions] lists the functions.
func ParseTemplate(text string, variables ...string) (*Template, error) {
	parsed, err := template.New(templateName).Funcs(templateFunctions()).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not a valid template: %w", err)
	}
	walker := &templateWalker{tree: parsed.Tree, variables: variables}
	for _, other := range parsed.Templates() {
		if other.Name() != templateName {
			return nil, fmt.Errorf("not a valid template: define and block are not supported, as in %q", other.Name())
		}
	}
	if err := walker.walkList(parsed.Root, true); err != nil {
		return nil, fmt.Errorf("not a valid template: %w", err)
	}
	return newTemplate(parsed.Tree, walker), nil
}

func newTemplate(tree *parse.Tree, walked *templateWalker) *Template {
	t := &Template{uses: walked.uses, usesAll: walked.usesAll}
	called := template.FuncMap{}
	for _, function := range walked.calls {
		if implementation, ok := templateFunctions()[function]; ok {
			called[function] = implementation
		}
	}
	t.executors.New = func() any {
		meter := &meter{}
		compiled := template.New(templateName).Option("missingkey=error").Funcs(called).Funcs(meter.functions())
		// The only error is a name that exists.
		compiled, err := compiled.AddParseTree(templateName, tree)
		if err != nil {
			return err
		}
		return &executor{template: compiled, meter: meter}
	}
	return t
}

// Uses reports whether the template may read a variable. A template that uses the whole dot as a value may read all.
func (t *Template) Uses(variable string) bool { return t.usesAll || slices.Contains(t.uses, variable) }

// Render returns the text for the variables, trimmed. It does not change the variables.
func (t *Template) Render(variables map[string]any) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	defer cancel()
	return t.render(ctx, variables)
}

func (t *Template) render(ctx context.Context, variables map[string]any) (rendered string, err error) {
	compiled := t.executors.Get()
	executor, ok := compiled.(*executor)
	if !ok {
		return "", fmt.Errorf("cannot render the template: %w", compiled.(error))
	}
	var result output
	defer func() {
		if panicked := recover(); panicked != nil {
			// The executor is not reused: its state is unknown.
			rendered, err = "", fmt.Errorf("cannot render the template: %v", panicked)
			return
		}
		t.executors.Put(executor)
	}()
	executor.meter.reset(ctx)
	if err := executor.template.Execute(&result, variables); err != nil {
		if objection, ok := errors.AsType[*meterError](err); ok {
			err = objection
		}
		return "", fmt.Errorf("cannot render the template: %w", err)
	}
	return strings.TrimSpace(result.text.String()), nil
}

// output is a buffer with a size limit.
type output struct {
	text strings.Builder
}

func (o *output) Write(text []byte) (int, error) {
	if o.text.Len()+len(text) > maxSize {
		return 0, errors.New("the text is larger than what fits into an API object")
	}
	return o.text.Write(text)
}
