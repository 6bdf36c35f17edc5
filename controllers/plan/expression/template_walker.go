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

// templateWalker walks a parsed template. It records the variables and functions that the template uses, and inserts the meter's
// functions where a rendering could take long or become large.
type templateWalker struct {
	tree      *parse.Tree
	variables []string

	uses    []string
	usesAll bool
	calls   []string
}

// walkList walks a list of nodes; root is true if the dot is the argument of Render.
func (w *templateWalker) walkList(list *parse.ListNode, dotIsRoot bool) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := w.walkNode(node, dotIsRoot); err != nil {
			return err
		}
	}
	return nil
}

func (w *templateWalker) walkNode(node parse.Node, dotIsRoot bool) error {
	switch typed := node.(type) {
	case *parse.ActionNode:
		description := typed.Pipe.String()
		if err := w.walkPipe(typed.Pipe, dotIsRoot); err != nil {
			return err
		}
		if len(typed.Pipe.Decl) == 0 {
			w.addStage(typed.Pipe, printStage, description)
		}
		return nil
	case *parse.IfNode:
		return w.walkBranch(&typed.BranchNode, dotIsRoot, dotIsRoot)
	case *parse.WithNode:
		return w.walkBranch(&typed.BranchNode, dotIsRoot, false)
	case *parse.RangeNode:
		if err := w.walkBranch(&typed.BranchNode, dotIsRoot, false); err != nil {
			return err
		}
		typed.List.Nodes = slices.Insert(typed.List.Nodes, 0, w.iterationNode(typed))
		return nil
	case *parse.TemplateNode:
		return fmt.Errorf("%s: template is not supported", w.location(typed))
	default:
		// Text, comments, break and continue.
		return nil
	}
}

// walkBranch walks if, with and range; inner is true if the dot is the root in their body.
func (w *templateWalker) walkBranch(branch *parse.BranchNode, dotIsRoot, inner bool) error {
	if err := w.walkPipe(branch.Pipe, dotIsRoot); err != nil {
		return err
	}
	if err := w.walkList(branch.List, inner); err != nil {
		return err
	}
	return w.walkList(branch.ElseList, dotIsRoot)
}

func (w *templateWalker) walkPipe(pipe *parse.PipeNode, dotIsRoot bool) error {
	description, calls := pipe.String(), len(w.calls)
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			if err := w.walkArgument(argument, dotIsRoot); err != nil {
				return err
			}
		}
	}
	if len(w.calls) > calls {
		w.addStage(pipe, valueStage, description)
	}
	return nil
}

func (w *templateWalker) walkArgument(node parse.Node, dotIsRoot bool) error {
	switch typed := node.(type) {
	case *parse.IdentifierNode:
		w.calls = append(w.calls, typed.Ident)
	case *parse.PipeNode:
		return w.walkPipe(typed, dotIsRoot)
	case *parse.ChainNode:
		// Fields of a parenthesized pipeline.
		return w.walkArgument(typed.Node, dotIsRoot)
	case *parse.DotNode:
		w.usesAll = w.usesAll || dotIsRoot
	case *parse.FieldNode:
		if dotIsRoot {
			return w.addUse(typed.Ident[0], node)
		}
	case *parse.VariableNode:
		return w.walkVariable(typed)
	}
	return nil
}

// walkVariable walks $, which is always the root, and the template's own variables.
func (w *templateWalker) walkVariable(node *parse.VariableNode) error {
	switch {
	case node.Ident[0] != "$":
		return nil
	case len(node.Ident) == 1:
		w.usesAll = true
		return nil
	default:
		return w.addUse(node.Ident[1], node)
	}
}

func (w *templateWalker) addUse(variable string, node parse.Node) error {
	if !slices.Contains(w.variables, variable) {
		return fmt.Errorf("%s: there is no .%s, only .%s", w.location(node), variable, strings.Join(w.variables, ", ."))
	}
	w.uses = append(w.uses, variable)
	return nil
}

// location returns the line and column of a node.
func (w *templateWalker) location(node parse.Node) string {
	location, _ := w.tree.ErrorContext(node)
	return strings.TrimPrefix(location, templateName+":")
}

// addStage passes the result of a pipeline through a function of the meter.
func (w *templateWalker) addStage(pipe *parse.PipeNode, function, description string) {
	pipe.Cmds = append(pipe.Cmds, w.meterCall(function, pipe, description))
}

// iterationNode returns an action that counts an iteration of a loop in the meter, and prints nothing.
func (w *templateWalker) iterationNode(loop *parse.RangeNode) parse.Node {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: loop.Pos, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: loop.Pos, Cmds: []*parse.CommandNode{w.meterCall(iterationStage, loop, "range")},
	}}
}

// meterCall returns a call of a function of the meter with its location.
func (w *templateWalker) meterCall(function string, node parse.Node, description string) *parse.CommandNode {
	where := fmt.Sprintf("%s: %s", w.location(node), description)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: node.Position(), Args: []parse.Node{
		parse.NewIdentifier(function).SetPos(node.Position()),
		&parse.StringNode{NodeType: parse.NodeString, Pos: node.Position(), Quoted: strconv.Quote(where), Text: where},
	}}
}
