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

package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/apis/schemas/structural"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// ErrNotServed is returned for a resource, kind or version that the cluster does not serve. It may do so later.
var ErrNotServed = errors.New("the cluster does not serve it")

// UnusableError is returned for what the cluster serves and mailboxes cannot have.
type UnusableError struct {
	// Reason says why, as a sentence about the resource.
	Reason string
}

func (e *UnusableError) Error() string { return e.Reason }

func newUnusableError(format string, args ...any) error {
	return &UnusableError{Reason: fmt.Sprintf(format, args...)}
}

// asUnusable returns why no schema can be made of what the cluster serves. What is beyond a limit stays known as such.
func asUnusable(err error) error {
	if _, tooLarge := errors.AsType[*structural.TooLargeError](err); tooLarge || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return newUnusableError("%v", err)
}

// Read returns the definition of a resource. One that the cluster has itself comes with all its versions, without
// whatever only means something there: status, conversion webhook, labels and annotations. One that is made here has the
// served versions, or only the one that is asked for, and its annotation schemas.NotesAnnotation says what a schema
// cannot express.
//
// Errors are ErrNotServed, an [UnusableError], a [*structural.TooLargeError], or what kept the cluster from answering.
func Read(ctx context.Context, cluster rest.Interface, resource synchubv1alpha1.ResourceDescriptor) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := clusterReader{cluster}.read(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", resourceName(resource), err)
	}
	return crd, nil
}

func (r clusterReader) read(ctx context.Context, resource synchubv1alpha1.ResourceDescriptor) (*apiextensionsv1.CustomResourceDefinition, error) {
	kinds, err := r.discover(ctx, resource)
	if err != nil {
		return nil, err
	}
	crd, reason, err := r.getCRD(ctx, kinds[0])
	if crd != nil || err != nil {
		return crd, err
	}
	crd, err = r.crdFromOpenAPI(ctx, kinds)
	if err == nil && reason != "" {
		schemas.AddNotes(crd, "", []structural.Note{{Reason: reason}})
	}
	return crd, err
}

// resourceName names a resource in errors.
func resourceName(resource synchubv1alpha1.ResourceDescriptor) string {
	name := cmp.Or(resource.Resource, "kind "+resource.Kind)
	if resource.Group != "" {
		name += "." + resource.Group
	}
	if resource.Version != "" {
		name += " in version " + resource.Version
	}
	return name
}
