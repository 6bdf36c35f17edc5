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
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	values, err := parse([]byte(`# The values of a chart.

# How many
# there are.
count: 2

image:
  # Where it is.
  name: a|b
  # Empty means
  # the newest.
  tag: ""
# Who may run it, as in Kubernetes.
security:
  user: 1000
  drop: [ALL]
# Not a value, but a word about those below.
probes:
  liveness:
    # How often.
    period: null
`))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`| value | default | description |
| --- | --- | --- |
| 'count' | '2' | How many there are. |
| 'security' | '{"drop":["ALL"],"user":1000}' | Who may run it, as in Kubernetes. |

### image

| value | default | description |
| --- | --- | --- |
| 'image.name' | '"a\|b"' | Where it is. |
| 'image.tag' | '""' | Empty means the newest. |

### probes

| value | default | description |
| --- | --- | --- |
| 'probes.liveness.period' | 'null' | How often. |
`, "'", "`")
	if got := tables(values); got != want {
		t.Errorf("the tables are\n%s\nand should be\n%s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"no YAML":              {"a: [", "decode"},
		"a list":               {"- a", "it is not one mapping"},
		"value without a word": {"a: 1", "line 1: say in a comment what a is"},
		"one of several":       {"# Of this.\na:\n  # Of b.\n  b: 1\n  c: 2", "line 5: say in a comment what a.c is"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse([]byte(test.content)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
