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
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// impossibleResourceVersion is a resourceVersion that no stored object has. A server-side apply that carries it creates an absent
// object and is refused for any other (tried with Kubernetes 1.35; proven for each target by proveCreateByApply).
const impossibleResourceVersion = "1"

// rootCAConfigMap is the ConfigMap with the cluster's certificate authorities, of which there is one in each namespace.
const rootCAConfigMap = "kube-root-ca.crt"

// creationMode is how a target creates, as it was found out after it had come up so many times.
type creationMode struct {
	connectionEpoch uint64
	byApply         bool
}

// supportsCreateByApply reports whether the target was seen never to overwrite by an apply that carries [impossibleResourceVersion]. It is asked
// before the first object is created after it has come up, since whoever comes back may be someone else, and not asked while
// nothing is to be created.
func (c *Connection) supportsCreateByApply() (bool, error) {
	epoch := c.ConnectionEpoch()
	c.lock.Lock()
	known := c.creation
	c.lock.Unlock()
	if known != nil && known.connectionEpoch == epoch {
		return known.byApply, nil
	}
	byApply, err, _ := c.creationProbes.Do(strconv.FormatUint(epoch, 10), func() (any, error) {
		// Others wait for the answer too, so it must not end with whoever asks.
		ctx, done := withTimeout(requestmetrics.WithClass(c.ctx, requestmetrics.Background), probeTimeout)
		defer done()
		byApply, err := c.probeCreateByApply(ctx)
		if err != nil {
			return false, fmt.Errorf("cannot find out how the target creates: %w", err)
		}
		c.lock.Lock()
		defer c.lock.Unlock()
		c.creation = &creationMode{connectionEpoch: epoch, byApply: byApply}
		return byApply, nil
	})
	return byApply.(bool), err
}

// probeCreateByApply asks the target, in two dry runs, whether an apply that carries neverExists is refused for an
// object that exists and creates one that does not. That is how the API server's store works, but nowhere promised.
// A target that does not allow the question is served by POST. Whoever is bound to namespaces asks about the ConfigMap that
// Kubernetes puts into each.
func (c *Connection) probeCreateByApply(ctx context.Context) (bool, error) {
	resource, kind, known, namespace := namespacesResource, "Namespace", metav1.NamespaceDefault, metav1.NamespaceNone
	if len(c.namespaces) > 0 {
		resource, kind, known, namespace = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", rootCAConfigMap, c.namespaces[0]
	}
	attempt := func(name string) error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind(kind)
		object.SetNamespace(namespace)
		object.SetName(name)
		object.SetResourceVersion(impossibleResourceVersion)
		_, err := c.resourceClient(resource, namespace).Apply(ctx, name, object, metav1.ApplyOptions{
			FieldManager: c.fieldManager, Force: true, DryRun: []string{metav1.DryRunAll},
		})
		return err
	}
	present := attempt(known)
	absent := attempt("synchub-probe-" + string(uuid.NewUUID()))
	for _, err := range []error{present, absent} {
		if isInconclusive(err) {
			return false, err
		}
	}
	return apierrors.IsConflict(present) && absent == nil, nil
}

// isInconclusive reports whether the error is about the target as it is now, and no answer to what was asked.
func isInconclusive(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return err != nil
	default:
		return false
	}
}
