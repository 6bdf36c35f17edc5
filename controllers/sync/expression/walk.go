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
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// walker goes through a parsed template: it notes which variables and functions it uses, and puts the meter's functions
// where a rendering could take long or grow.
type walker struct {
	tree      *parse.Tree
	variables []string

	uses  []string
	every bool
	calls []string
}

// list walks a list of nodes; root says whether the dot is what Render was given.
func (w *walker) list(list *parse.ListNode, root bool) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := w.node(node, root); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) node(node parse.Node, root bool) error {
	switch typed := node.(type) {
	case *parse.ActionNode:
		what := typed.Pipe.String()
		if err := w.pipe(typed.Pipe, root); err != nil {
			return err
		}
		if len(typed.Pipe.Decl) == 0 {
			w.addStage(typed.Pipe, printStage, what)
		}
		return nil
	case *parse.IfNode:
		return w.branch(&typed.BranchNode, root, root)
	case *parse.WithNode:
		return w.branch(&typed.BranchNode, root, false)
	case *parse.RangeNode:
		if err := w.branch(&typed.BranchNode, root, false); err != nil {
			return err
		}
		typed.List.Nodes = slices.Insert(typed.List.Nodes, 0, w.round(typed))
		return nil
	case *parse.TemplateNode:
		return fmt.Errorf("%s: template is not supported", w.location(typed))
	default:
		// Text, comments, break and continue.
		return nil
	}
}

// branch walks if, with and range; inner says whether the dot is the root in what they enclose.
func (w *walker) branch(branch *parse.BranchNode, root, inner bool) error {
	if err := w.pipe(branch.Pipe, root); err != nil {
		return err
	}
	if err := w.list(branch.List, inner); err != nil {
		return err
	}
	return w.list(branch.ElseList, root)
}

func (w *walker) pipe(pipe *parse.PipeNode, root bool) error {
	what, calls := pipe.String(), len(w.calls)
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			if err := w.argument(argument, root); err != nil {
				return err
			}
		}
	}
	if len(w.calls) > calls {
		w.addStage(pipe, passStage, what)
	}
	return nil
}

func (w *walker) argument(node parse.Node, root bool) error {
	switch typed := node.(type) {
	case *parse.IdentifierNode:
		w.calls = append(w.calls, typed.Ident)
	case *parse.PipeNode:
		return w.pipe(typed, root)
	case *parse.ChainNode:
		// Fields of what is in parentheses.
		return w.argument(typed.Node, root)
	case *parse.DotNode:
		w.every = w.every || root
	case *parse.FieldNode:
		if root {
			return w.use(typed.Ident[0], node)
		}
	case *parse.VariableNode:
		return w.variable(typed)
	}
	return nil
}

// variable walks $, which is always the root, and variables that the template declares.
func (w *walker) variable(node *parse.VariableNode) error {
	switch {
	case node.Ident[0] != "$":
		return nil
	case len(node.Ident) == 1:
		w.every = true
		return nil
	default:
		return w.use(node.Ident[1], node)
	}
}

func (w *walker) use(variable string, node parse.Node) error {
	if !slices.Contains(w.variables, variable) {
		return fmt.Errorf("%s: there is no .%s, only .%s", w.location(node), variable, strings.Join(w.variables, ", ."))
	}
	w.uses = append(w.uses, variable)
	return nil
}

// location is the line and column of a node.
func (w *walker) location(node parse.Node) string {
	location, _ := w.tree.ErrorContext(node)
	return strings.TrimPrefix(location, name+":")
}

// addStage makes what a pipeline yields go through a function of the meter.
func (w *walker) addStage(pipe *parse.PipeNode, function, what string) {
	pipe.Cmds = append(pipe.Cmds, w.command(function, pipe, what))
}

// round is an action that tells the meter of one more round of a loop. It prints nothing.
func (w *walker) round(loop *parse.RangeNode) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: loop.Pos, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: loop.Pos, Cmds: []*parse.CommandNode{w.command(roundStage, loop, "range")},
	}}
}

// command calls a function of the meter, which is told where it is.
func (w *walker) command(function string, node parse.Node, what string) *parse.CommandNode {
	where := fmt.Sprintf("%s: %s", w.location(node), what)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: node.Position(), Args: []parse.Node{
		parse.NewIdentifier(function).SetPos(node.Position()),
		&parse.StringNode{NodeType: parse.NodeString, Pos: node.Position(), Quoted: strconv.Quote(where), Text: where},
	}}
}
