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
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/notfound"
)

// IsAPIRemoved reports whether a resource that the target does not serve was removed with all its objects, because its
// CustomResourceDefinition was deleted. The objects of other APIs stay in the cluster's store, and appear again with the API.
func (c *Connection) IsAPIRemoved(ctx context.Context, resource schema.GroupResource) (bool, error) {
	if isBuiltIn(resource.Group) {
		return false, nil
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	name := resource.String()
	_, err := c.discovery.GetCRD(ctx, name)
	switch {
	case err == nil:
		return false, nil
	case notfound.Proves(err, crdsResource.GroupResource(), name):
		return true, nil
	case apierrors.IsForbidden(err):
		// Without the right to read CRDs, the groups decide: an API server lists the group of CRDs, and a proxy does not.
		_, err = c.discovery.Versions(ctx, crdsResource.Group)
		return err == nil, c.discoveryError(err)
	case errors.Is(err, discovery.ErrNotServed), apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, c.credentials.Error(err)
	}
}

// isBuiltIn reports whether Kubernetes itself serves an API group. Such an API can be disabled.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || group == crdsResource.Group || group == "apiregistration.k8s.io" || scheme.Scheme.IsGroupRegistered(group)
}
