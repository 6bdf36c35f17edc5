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

package objectdiff

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestPrint(t *testing.T) {
	const (
		before = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 1}}"
		after  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2}}"
		one    = "{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}, data: {key: b25l}}"
		two    = "{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}, data: {key: dHdv}}"
		viewer = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'system:viewer/all'}}"
	)
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"a change":             {before, after, []string{"/apps.v1.Deployment.shop.web ", "-  replicas: 1\n+  replicas: 2\n"}},
		"no change":            {before, before, nil},
		"a new object":         {"", viewer, []string{"/rbac.authorization.k8s.io.v1.ClusterRole..system:viewer_all\t", "+kind: ClusterRole\n"}},
		"an object less":       {before, "", []string{"-  replicas: 1\n"}},
		"a Secret":             {one, two, []string{"/v1.Secret.shop.key ", "-  key: '*** (before)'\n+  key: '*** (after)'\n"}},
		"a new Secret":         {"", two, []string{"+  key: '***'\n"}},
		"a Secret that leaves": {one, "", []string{"-  key: '***'\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var change Change
			if test.from != "" {
				change.From = fixtures.Map(t, test.from)
			}
			if test.to != "" {
				change.To = fixtures.Map(t, test.to)
			}
			var out bytes.Buffer
			if err := Print(genericiooptions.IOStreams{Out: &out, ErrOut: &out}, []Change{change}); err != nil {
				t.Fatal(err)
			}
			for _, part := range test.want {
				if !strings.Contains(out.String(), part) {
					t.Errorf("%q is missing in\n%s", part, out.String())
				}
			}
			if shown := regexp.MustCompile("b25l|dHdv").FindString(out.String()); shown != "" || test.want == nil && out.Len() > 0 {
				t.Errorf("it prints\n%s", out.String())
			}
		})
	}
}

func TestPrintReportsAFailure(t *testing.T) {
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "no-such-program")
	if err := Print(genericiooptions.NewTestIOStreamsDiscard(), nil); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("got %v", err)
	}
}
