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

package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// fakeClient is a fake, whose watches do not begin with the present objects.
type fakeClient struct{ client.WithWatch }

// IsWatchListSemanticsUnSupported has reflectors list before they watch.
func (fakeClient) IsWatchListSemanticsUnSupported() bool { return true }

// watchTargets watches the SyncTargets of a client, and returns the store once it has them, or an error.
func watchTargets(t *testing.T, from client.WithWatch, changed *changes) *store[*edgev2alpha1.SyncTarget] {
	t.Helper()
	made, err := watchKind(t.Context(), fakeClient{from}, "SyncTargets", &edgev2alpha1.SyncTarget{}, func() client.ObjectList { return &edgev2alpha1.SyncTargetList{} }, fields.Everything(), changed.add)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	made.awaitReady(ctx)
	if ctx.Err() != nil {
		t.Fatal("the store is not ready")
	}
	return made
}

// A user without rights sees the refused request in place of the objects.
func TestStoreWithoutRights(t *testing.T) {
	refused := apierrors.NewForbidden(edgev2alpha1.SchemeGroupVersion.WithResource("synctargets").GroupResource(), "", nil)
	from := fake.NewClientBuilder().WithScheme(cli.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, refused
		},
	}).Build()
	w := &workspace{name: "root:fleet", targets: watchTargets(t, from, newChanges())}
	content, err := render((&server{workspaces: []*workspace{w}, changes: newChanges(), now: time.Now}).view(t.Context(), mustParse(t, "/")), "main")
	if err != nil {
		t.Fatal(err)
	}
	if want := "root:fleet: SyncTargets cannot be read: synctargets.edge.kubestellar.io is forbidden"; !strings.Contains(string(content), want) {
		t.Errorf("%q is not in\n%s", want, content)
	}
}
