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

package targets

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// definitions are the CRDs of the clusters.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: served, namespace: default}
---
apiVersion: example.org/v1
kind: Gadget
metadata: {name: served}
`

// The clusters of this package. Tests that stop one use frail.
var (
	steady = suite.Shared(func(t testing.TB) *servers.Target { return startTarget(t, "steady") })
	frail  = suite.Shared(func(t testing.TB) *servers.Target { return startTarget(t, "frail") })
)

// deadProxy is the proxy that the environment of these tests names. Nothing listens there.
var deadProxy string

func TestMain(m *testing.M) {
	// net/http reads the environment at its first request, so this cannot wait for the test of the proxy.
	port, err := servers.FreePort()
	deadProxy = "http://127.0.0.1:" + strconv.Itoa(port)
	if err = errors.Join(err, os.Setenv("HTTPS_PROXY", deadProxy), os.Setenv("https_proxy", deadProxy), os.Unsetenv("NO_PROXY"), os.Unsetenv("no_proxy")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	suite.Main(m)
}

func startTarget(t testing.TB, name string) *servers.Target {
	t.Helper()
	target := suite.StartTarget(t, name, servers.TargetOptions{})
	suite.Apply(t, target.Config, definitions)
	return target
}

// administrator returns a client that is not the hub's.
func administrator(t *testing.T, target *servers.Target) dynamic.Interface {
	t.Helper()
	return suite.Dynamic(t, target.Config)
}

// newNamespace creates a namespace for one test.
func newNamespace(t *testing.T, target *servers.Target) string {
	t.Helper()
	name := "test-" + strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, t.Name()))
	suite.Apply(t, target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	return name
}

// kubeconfigAt returns the administrator's kubeconfig with another server, which leads to the same cluster.
func kubeconfigAt(t *testing.T, target *servers.Target, server string) []byte {
	t.Helper()
	return suite.Kubeconfig(t, server, target.Config.CAData, target.Config.BearerToken)
}
