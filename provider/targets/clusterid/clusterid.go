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

// Package clusterid reads the ID of a cluster. The hub compares the ID of a target at each connection, and `kubectl synchub`
// before it deletes objects.
package clusterid

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"

	"github.com/synchub-dev/synchub/provider/notfound"
)

// maxLength bounds the length of an ID; a UID has 36 characters.
const maxLength = 64

// sources are the objects whose UID is the ID of a cluster, the preferred one first.
var sources = []struct {
	resource schema.GroupVersionResource
	name     string
	// optional is true if not every API server serves the resource.
	optional bool
}{
	{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, metav1.NamespaceSystem, false},
	{schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}, "cluster", true},
}

// Get requests the ID of a cluster. The ID is empty if the cluster hides it.
func Get(ctx context.Context, from metadata.Interface) (string, error) {
	for _, origin := range sources {
		object, err := from.Resource(origin.resource).Get(ctx, origin.name, metav1.GetOptions{})
		if err == nil {
			return printable(string(object.GetUID())), nil
		}
		switch {
		case apierrors.IsForbidden(err), notfound.Proves(err, origin.resource.GroupResource(), origin.name):
		case !apierrors.IsNotFound(err):
			return "", err
		case !origin.optional:
			return "", fmt.Errorf("the answer 404 is not about %s %s, so it may come from a proxy: %w", origin.resource.Resource, origin.name, err)
		}
	}
	return "", nil
}

// printable returns the ID that a target sent, in a form that is safe to show and to compare.
func printable(result string) string {
	if len(result) <= maxLength && len(validation.IsDNS1123Subdomain(result)) == 0 {
		return result
	}
	sum := sha256.Sum256([]byte(result))
	return "sha256-" + hex.EncodeToString(sum[:16])
}
