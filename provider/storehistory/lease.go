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

package storehistory

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// LeasesGetter puts the [Annotation] on the Lease of a leader election whenever the leader renews it.
type LeasesGetter struct {
	coordinationv1client.LeasesGetter
	Guard *Guard
}

// Leases implements [coordinationv1client.LeasesGetter].
func (l LeasesGetter) Leases(namespace string) coordinationv1client.LeaseInterface {
	return leases{l.LeasesGetter.Leases(namespace), l.Guard}
}

type leases struct {
	coordinationv1client.LeaseInterface
	guard *Guard
}

// Create implements [coordinationv1client.LeaseInterface].
func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Create(ctx, l.annotated(lease), options)
}

// Update implements [coordinationv1client.LeaseInterface].
func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Update(ctx, l.annotated(lease), options)
}

// annotated returns the Lease with the versions of kcp that the guard knows.
func (l leases) annotated(lease *coordinationv1.Lease) *coordinationv1.Lease {
	next, ok := l.guard.Watermarks(lease.Annotations[Annotation])
	if !ok || next == lease.Annotations[Annotation] {
		return lease
	}
	lease = lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, Annotation, next)
	return lease
}
