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

package tier_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/test/framework"
)

// ownTargets are the packages that have a target in the Makefile of their own, and are not in `make test-all`. The command
// for the end-to-end specs names their directory.
var ownTargets = map[string]string{
	"hack/site":          "docs",
	"test/scale":         "test-scale",
	"test/upgrade":       "test-upgrade",
	"test/compatibility": "test-compatibility",
	"test/shards":        "test-shards",
}

const module = "github.com/synchub-dev/synchub/"

func TestEachPackageIsInATier(t *testing.T) {
	all, quick, thorough := commandsOf(t, "test-all"), commandsOf(t, "test"), strings.Fields(variable(t, "THOROUGH_PACKAGES"))
	with := packagesWithTests(t)
	for _, path := range with {
		name := strings.TrimPrefix(path, module)
		target, own := ownTargets[name]
		switch {
		case own:
			if !names(commandsOf(t, target), name) {
				t.Errorf("make %s does not test %s", target, name)
			}
		case !names(all, name):
			t.Errorf("make test-all does not test %s", name)
		case names(quick, name) == slices.Contains(thorough, name):
			t.Errorf("%s must be either tested by make test, or one of THOROUGH_PACKAGES", name)
		}
	}
	for _, name := range thorough {
		if !slices.Contains(with, module+name) {
			t.Errorf("THOROUGH_PACKAGES names %s, which has no tests", name)
		}
	}
}

// tunnels is the part in which all clusters dial the hub.
const tunnels = "tunnels"

// commandsOfPart returns the commands of a part. The specs of tunnels are in other parts too, so they count as if they had a label.
func commandsOfPart(t *testing.T, part string) string {
	t.Helper()
	commands := output(t, "make", "--no-print-directory", "--dry-run", "test-part", "PART="+part)
	if part != tunnels {
		return commands
	}
	return strings.Replace(commands, "-label-filter='(!thorough || placement) && !direct'", "-label-filter='!thorough || "+tunnels+"'", 1)
}

// CI runs the parts in turn, so each thorough test must be in one.
func TestEachThoroughTestIsInAPart(t *testing.T) {
	var parts, labels []string
	partsOf := map[string][]string{}
	for part := range strings.FieldsSeq(variable(t, "PARTS")) {
		commands := commandsOfPart(t, part)
		filter := regexp.MustCompile(`-label-filter='!thorough \|\| ([^']*)'`).FindStringSubmatch(commands)
		quick, all, ok := strings.Cut(commands[strings.Index(commands, "go test"):], " && ")
		if filter == nil || !ok {
			t.Fatalf("make test-part PART=%s does not run all quick specs, or all tests beside the code of some packages: %s", part, commands)
		}
		if part != tunnels {
			parts, labels = append(parts, part), append(labels, filter[1])
		}
		for word := range strings.FieldsSeq(all) {
			name := strings.TrimSuffix(word, ";")
			partsOf[name] = append(partsOf[name], part)
			if strings.HasPrefix(name, module) && slices.Contains(strings.Fields(quick), name) {
				t.Errorf("make test-part PART=%s tests %s twice", part, name)
			}
		}
	}
	last := len(parts) - 1
	if last < 1 || !slices.Equal(labels[:last], parts[:last]) || labels[last] != "!("+strings.Join(parts[:last], " || ")+")" {
		t.Errorf("the parts %v have the specs %v: the last must have those without the label of another", parts, labels)
	}
	for _, path := range packagesWithTests(t) {
		name := strings.TrimPrefix(path, module)
		if _, own := ownTargets[name]; !own && name != "test/e2e" && len(partsOf[path]) != 1 {
			t.Errorf("the thorough tests of %s are in the parts %v, and not in one", path, partsOf[path])
		}
	}
}

// In ginkgo's specs all labels and decorators are allowed but those that leave a spec out of `make test-all`.
func TestEachSpecIsInATier(t *testing.T) {
	if strings.Contains(commandsOf(t, "test-all"), "-label-filter") {
		t.Error("make test-all leaves out specs by their label")
	}
	if !strings.Contains(commandsOf(t, "test"), "-label-filter='!thorough'") {
		t.Error("make test does not leave out the specs labelled thorough")
	}
	specs, quick := 0, 0
	for _, file := range testFiles(t, "test/e2e") {
		all, few := countSpecs(t, file, parse(t, file), false)
		specs, quick = specs+all, quick+few
	}
	if quick == 0 || quick == specs {
		t.Errorf("%d of %d specs are quick", quick, specs)
	}
	t.Logf("%d of %d specs are quick", quick, specs)
}

// countSpecs returns how many specs there are below a node, and how many of them are quick. inThorough is true if their container is
// thorough.
func countSpecs(t *testing.T, file string, container ast.Node, inThorough bool) (specs, quick int) {
	ast.Inspect(container, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || node == container {
			return true
		}
		switch calledName(call) {
		case "It", "Specify", "Entry":
			specs++
			switch is := isThorough(call.Args); {
			case is && inThorough:
				t.Errorf("%s: a spec is thorough twice", file)
			case !is && !inThorough:
				quick++
			}
		case "Label":
			checkLabels(t, file, call.Args)
		case "Describe":
			if inThorough || !isThorough(call.Args) {
				return true
			}
			all, _ := countSpecs(t, file, call, true)
			specs += all
			return false
		}
		return true
	})
	return specs, quick
}

// leavesOut matches a call that leaves a test or a spec out. Fuzz tests may skip an input.
var leavesOut = regexp.MustCompile(`\bSkip(f|Now)?\(|\btesting\.Short\(|\b[FPX](It|Describe|Context|Specify|Entry|When)\(|\bPending\b *[,)]|\bFocus\b *[,)]`)

func TestOnlyTiersLeaveTestsOut(t *testing.T) {
	for _, file := range testFiles(t, ".") {
		if strings.HasPrefix(file, "test/tier/") {
			continue
		}
		ast.Inspect(parse(t, file), func(node ast.Node) bool {
			if function, ok := node.(*ast.FuncDecl); ok && strings.HasPrefix(function.Name.Name, "Fuzz") {
				return false
			}
			call, ok := node.(*ast.CallExpr)
			if ok && leavesOut.MatchString(calledName(call)+"(") {
				t.Errorf("%s leaves out a test by %s: use tier.Thorough, or the label thorough", file, calledName(call))
			}
			return true
		})
	}
}

var knownLabels = []string{"thorough", "escapes", "faults", "requests", "placement", "direct"}

func checkLabels(t *testing.T, file string, labels []ast.Expr) {
	t.Helper()
	for _, label := range labels {
		literal, ok := label.(*ast.BasicLit)
		if !ok {
			t.Errorf("%s: a label is no literal", file)
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || !slices.Contains(knownLabels, text) {
			t.Errorf("%s: the label %s is none of %v", file, literal.Value, knownLabels)
		}
	}
}

func isThorough(args []ast.Expr) bool {
	return slices.ContainsFunc(args, func(arg ast.Expr) bool {
		identifier, ok := arg.(*ast.Ident)
		return ok && identifier.Name == "thorough"
	})
}

// calledName returns the name of the function that is called, with the package or receiver if there is one.
func calledName(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		if of, ok := function.X.(*ast.Ident); ok {
			return of.Name + "." + function.Sel.Name
		}
		return function.Sel.Name
	}
	return ""
}

// commandsOf returns the commands of a target of the Makefile.
func commandsOf(t *testing.T, target string) string {
	t.Helper()
	return output(t, "make", "--no-print-directory", "--dry-run", target)
}

// names reports whether commands name a package, by its path or its directory.
func names(commands, name string) bool {
	return slices.ContainsFunc(strings.Fields(commands), func(word string) bool { return word == module+name || word == "./"+name })
}

// packagesWithTests returns the import paths of the packages that have tests.
func packagesWithTests(t *testing.T) []string {
	t.Helper()
	with := strings.Fields(output(t, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./..."))
	if len(with) < 50 {
		t.Fatalf("only %d packages have tests", len(with))
	}
	return with
}

// variable returns a variable of the Makefile.
func variable(t *testing.T, name string) string {
	t.Helper()
	makefile := output(t, "make", "--no-print-directory", "--dry-run", "--print-data-base", "help")
	found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(makefile)
	if found == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return found[1]
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	command.Dir = root(t)
	content, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	return string(content)
}

// testFiles returns the files with tests below a directory of the repository, relative to the repository.
func testFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	root := root(t)
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if entry.IsDir() && (slices.Contains([]string{"bin", "dist", "logs"}, name) || strings.HasPrefix(name, ".") && name != ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func root(t *testing.T) string {
	t.Helper()
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
