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

package explain

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// Observed is what was read, or why it could not be.
type Observed[T any] struct {
	// Value is what there is; the zero value if there is none.
	Value T
	// Err is why it is not known what there is.
	Err error
}

// Facts are all that is known when the question is asked.
type Facts struct {
	Now        time.Time
	SyncTarget *edgev2alpha1.SyncTarget
	// Hub is the UID of the provider workspace's LogicalCluster; empty if it is not known, and then marks tell it.
	Hub types.UID

	// Resource and Key name the object in the mailbox.
	Resource schema.GroupResource
	Key      types.NamespacedName
	// Served is the API as the mailbox serves it, of which Native and Exported are not looked at; nil if it does not.
	Served Observed[*publishedresource.API]
	// Published are all PublishedResources.
	Published Observed[[]synchubv1alpha1.PublishedResource]
	// Configs are those of the mailbox.
	Configs Observed[Configs]
	// Object and Namespace are the mailbox's, nil if there is none.
	Object, Namespace Observed[*unstructured.Unstructured]
	// Events are those about the object in the mailbox, as far as they can be seen.
	Events []corev1.Event
	// Target is what the target has at [Facts.TargetRef], nil if nothing.
	Target Observed[*unstructured.Unstructured]
}

// Configs are what selects objects in a mailbox.
type Configs struct {
	SyncerConfigs   []*edgev2alpha1.SyncerConfig
	EdgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig
}

// TargetRef is where an object belongs on the target.
type TargetRef struct {
	objectsync.TargetAPI
	types.NamespacedName
}

// displayName is the name of the object there.
func (p TargetRef) displayName() string { return strings.TrimPrefix(p.String(), "/") }

// API returns the mailbox's resource, in the version that is synced as far as that is known.
func (f *Facts) API() schema.GroupVersionResource {
	return newExplainer(f).resource.GroupVersionResource
}

// TargetRef returns where on the target to look for the object; the error says why that is not known. Of the resource its name or
// its kind may be empty, and the version.
func (f *Facts) TargetRef() (TargetRef, error) {
	e := newExplainer(f)
	return e.targetRef, e.targetRefErr
}
