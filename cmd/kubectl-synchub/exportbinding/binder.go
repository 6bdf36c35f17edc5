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

package exportbinding

import (
	"context"
	"fmt"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// Export is an APIExport of the hub.
type Export struct {
	// Name is the name of the APIExport, and of a new APIBinding.
	Name string
	// Command binds the export.
	Command string
	// Kinds names the objects of an API of the export in messages, such as EdgePlacements, and NewList returns an empty list
	// of them.
	Kinds   string
	NewList func() client.ObjectList
	// Labels are the labels of the objects that the export needs of a claimed resource. The export needs all objects of other
	// resources.
	Labels map[apisv1alpha2.GroupResource]map[string]string
	// GroupFlag is the flag of kubectl synchub init that lets a group bind the export.
	GroupFlag string
	// Limited describes, for messages, the work that the hub cannot do while a claim is rejected or limited.
	Limited string
}

// Binder binds an export in a workspace.
type Binder struct {
	Export
	// Client has the user's credentials for the workspace. DryRun is true if the server must store nothing.
	Client client.WithWatch
	DryRun bool
	// ProviderPath is the path of the workspace with the export. Provider reads that workspace, which the user may not be
	// allowed to do.
	ProviderPath string
	Provider     client.Reader
	// Timeout bounds each wait for kcp or the hub.
	Timeout time.Duration
	// Report is called for each object with the effect on it, and Info for each message.
	Report func(registration.Change)
	Info   func(string)
}

// Writer returns the client for writes. In a dry run the server stores nothing.
func (b *Binder) Writer() client.Client {
	if b.DryRun {
		return client.NewDryRunClient(b.Client)
	}
	return b.Client
}

// Find returns the APIBinding of the export, or nil if there is none. It returns an error if the workspace binds
// the export of another provider workspace, or if an APIBinding of another export has the name.
func (b *Binder) Find(ctx context.Context) (*apisv1alpha2.APIBinding, error) {
	var list apisv1alpha2.APIBindingList
	if err := b.Client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the current context leads to no workspace of kcp: it serves no APIBindings. Choose another with --context or --workspace: %w", err)
		}
		return nil, fmt.Errorf("cannot list the APIBindings of the workspace: %w", err)
	}
	var conflict *apisv1alpha2.APIBinding
	for i := range list.Items {
		binding := &list.Items[i]
		export := binding.Spec.Reference.Export
		switch {
		case export != nil && export.Name == b.Name && export.Path == b.ProviderPath:
			if binding.DeletionTimestamp != nil {
				return nil, fmt.Errorf("the APIBinding %s is being deleted: wait with `kubectl wait --for=delete apibinding/%s`, and run the command again", binding.Name, binding.Name)
			}
			return binding, nil
		case binding.Name == b.Name || export != nil && export.Name == b.Name:
			conflict = binding
		}
	}
	if conflict == nil {
		return nil, nil //nolint:nilnil // a missing APIBinding is no error
	}
	return nil, b.describeConflict(conflict)
}

func (b *Binder) describeConflict(binding *apisv1alpha2.APIBinding) error {
	export := binding.Spec.Reference.Export
	if export == nil {
		export = &apisv1alpha2.ExportBindingReference{}
	}
	if export.Name == b.Name {
		return fmt.Errorf("the APIBinding %s binds the export of the provider workspace %s, not of %s: choose it with --provider-workspace %s", binding.Name, export.Path, b.ProviderPath, export.Path)
	}
	return fmt.Errorf("the APIBinding %s binds the export %s of %s, and its name is needed for the export of %s: delete it, and run the command again", binding.Name, export.Name, export.Path, b.ProviderPath)
}

// Manifest returns the APIBinding as Ensure leaves it. It sends no writes.
func (b *Binder) Manifest(ctx context.Context) (*apisv1alpha2.APIBinding, error) {
	existing, err := b.Find(ctx)
	if err != nil {
		return nil, err
	}
	binding := b.newBinding()
	if existing != nil {
		binding.Name = existing.Name
		binding.Spec.PermissionClaims = b.withClaims(existing.Spec.PermissionClaims, existing.Status.ExportPermissionClaims)
		return binding, nil
	}
	requested, err := b.requestedClaims(ctx)
	if err != nil {
		b.Info(fmt.Sprintf("The claims of the export %s are missing in the APIBinding, because they cannot be read before the workspace binds the export: %s", b.Name, err))
	}
	binding.Spec.PermissionClaims = b.withClaims(nil, requested)
	return binding, nil
}

// requestedClaims reads the claims of the export in the provider workspace.
func (b *Binder) requestedClaims(ctx context.Context) ([]apisv1alpha2.PermissionClaim, error) {
	var export apisv1alpha2.APIExport
	if err := b.Provider.Get(ctx, types.NamespacedName{Name: b.Name}, &export); err != nil {
		return nil, err
	}
	return export.Spec.PermissionClaims, nil
}

func (b *Binder) newBinding() *apisv1alpha2.APIBinding {
	return &apisv1alpha2.APIBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.Name},
		Spec: apisv1alpha2.APIBindingSpec{
			Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Path: b.ProviderPath, Name: b.Name}},
		},
	}
}
