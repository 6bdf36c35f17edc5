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

	"github.com/synchub-dev/synchub/provider/requestclass"
)

// impossibleResourceVersion is a resourceVersion that no stored object has. A server-side apply with it creates an absent object,
// and fails if the object exists (tried with Kubernetes 1.35; probeCreateByApply verifies it for each target).
const impossibleResourceVersion = "1"

// rootCAConfigMap is the ConfigMap with the cluster's certificate authorities, which Kubernetes creates in each namespace.
const rootCAConfigMap = "kube-root-ca.crt"

// creationMode is the result of the create-by-apply probe in one connection epoch.
type creationMode struct {
	epoch   uint64
	byApply bool
}

// supportsCreateByApply reports whether an apply with [impossibleResourceVersion] never overwrites on this target. It probes the
// target once in each connection epoch, because another cluster may answer after an outage, and only before a create.
func (o *Objects) supportsCreateByApply() (bool, error) {
	epoch := o.health.Epoch()
	o.lock.Lock()
	known := o.creation
	o.lock.Unlock()
	if known != nil && known.epoch == epoch {
		return known.byApply, nil
	}
	byApply, err, _ := o.creationProbes.Do(strconv.FormatUint(epoch, 10), func() (any, error) {
		// Other callers wait for the answer too, so the probe must not end with the context of the first.
		ctx, done := withTimeout(requestclass.With(o.env.ctx, requestclass.Background), probeTimeout)
		defer done()
		byApply, err := o.probeCreateByApply(ctx)
		if err != nil {
			return false, fmt.Errorf("cannot determine how the target creates objects: %w", err)
		}
		o.lock.Lock()
		defer o.lock.Unlock()
		o.creation = &creationMode{epoch: epoch, byApply: byApply}
		return byApply, nil
	})
	return byApply.(bool), err
}

// probeCreateByApply makes two dry runs of an apply with [impossibleResourceVersion]: one must fail for an existing object, the
// other one must create an absent object. The API server's store behaves like that, but the API does not guarantee it. If the
// target refuses the dry runs, the hub creates by POST. A connection that is bound to namespaces probes with a ConfigMap.
func (o *Objects) probeCreateByApply(ctx context.Context) (bool, error) {
	resource, kind, known, namespace := namespacesResource, "Namespace", metav1.NamespaceDefault, metav1.NamespaceNone
	if len(o.namespaces) > 0 {
		resource, kind, known, namespace = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", rootCAConfigMap, o.namespaces[0]
	}
	attempt := func(name string) error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind(kind)
		object.SetNamespace(namespace)
		object.SetName(name)
		object.SetResourceVersion(impossibleResourceVersion)
		_, err := o.apply(ctx, resource, object, metav1.DryRunAll)
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

// isInconclusive reports whether the error is temporary, and so does not answer the probe.
func isInconclusive(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return err != nil
	default:
		return false
	}
}
