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

package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"unicode"
)

// name is an identifier, a file or a directory, where the code declares it.
type name struct {
	text     string
	position token.Position
}

// declaredNames returns all names that a file declares: its package, types, type parameters, functions, methods, fields,
// constants, variables, parameters, results and labels. Uses of names are left out: they are fixed with the declaration.
func declaredNames(files *token.FileSet, file *ast.File) []name {
	var found []name
	add := func(identifiers ...*ast.Ident) {
		for _, identifier := range identifiers {
			if identifier != nil && identifier.Name != "_" {
				found = append(found, name{text: identifier.Name, position: files.Position(identifier.Pos())})
			}
		}
	}
	add(file.Name)
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			add(node.Name)
		case *ast.TypeSpec:
			add(node.Name)
		case *ast.ValueSpec:
			add(node.Names...)
		case *ast.FuncDecl:
			add(node.Name)
		case *ast.Field:
			add(node.Names...)
		case *ast.LabeledStmt:
			add(node.Label)
		case *ast.AssignStmt:
			if node.Tok == token.DEFINE {
				add(identifiersIn(node.Lhs...)...)
			}
		case *ast.RangeStmt:
			if node.Tok == token.DEFINE {
				add(identifiersIn(node.Key, node.Value)...)
			}
		}
		return true
	})
	return found
}

func identifiersIn(expressions ...ast.Expr) []*ast.Ident {
	var found []*ast.Ident
	for _, expression := range expressions {
		if identifier, ok := expression.(*ast.Ident); ok {
			found = append(found, identifier)
		}
	}
	return found
}

// pathNames returns the names of the file and of its directories, as far as seen does not have them yet.
func pathNames(path string, seen map[string]bool) []name {
	var found []name
	for path = filepath.ToSlash(path); path != "."; path = filepath.ToSlash(filepath.Dir(path)) {
		if seen[path] {
			break
		}
		seen[path] = true
		base := filepath.Base(path)
		found = append(found, name{text: strings.TrimSuffix(base, filepath.Ext(base)), position: token.Position{Filename: path, Line: 1}})
	}
	return found
}

// splitWords returns the words of a name in lower case: "HTTPServerOf2Hubs" consists of http, server, of and hubs.
func splitWords(text string) []string {
	var words []string
	runes := []rune(text)
	begin := 0
	end := func(at int) {
		if at > begin {
			words = append(words, strings.ToLower(string(runes[begin:at])))
		}
		begin = at
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end(i)
			begin = i + 1
		case unicode.IsUpper(r) && i > 0:
			startsAfterLower := unicode.IsLower(runes[i-1])
			endsAcronym := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if startsAfterLower || endsAcronym {
				end(i)
			}
		}
	}
	end(len(runes))
	return words
}
