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

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/synchub-dev/synchub/provider/bootstrap"
)

// The hub says once at its start what to do if the provider workspace has no workload export.
func TestLogPlacementUnavailable(t *testing.T) {
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: bootstrap.WorkloadExport}}
	broken := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("broken")
	}}
	for name, test := range map[string]struct {
		provider client.Reader
		want     string
	}{
		"there":   {fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(export).Build(), ""},
		"missing": {fake.NewClientBuilder().WithScheme(Scheme()).Build(), "run `synchub init --provider-workspace root:hub"},
		"broken":  {fake.NewClientBuilder().WithScheme(Scheme()).WithInterceptorFuncs(broken).Build(), "cannot find out whether placement is available"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			logPlacementUnavailable(t.Context(), test.provider, Options{Workspace: "root:hub", Log: log})
			if test.want == "" && len(lines) > 0 || test.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], test.want)) {
				t.Errorf("wanted one line with %q, got %q", test.want, lines)
			}
		})
	}
}
