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

package baseline

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Label is on all objects that the baseline syncer writes to targets, with the value true.
	Label = "bench.synchub.dev/bare"
	// markAnnotation has a value as long as a hub's mark.
	markAnnotation = "bench.synchub.dev/mark"
	fieldManager   = "bare"
)

// Config configures a baseline syncer.
type Config struct {
	// Kubeconfig is the path of the kubeconfig of the hub's kcp user, and Endpoint is the URL of the mailboxes' virtual
	// workspace.
	Kubeconfig, Endpoint string
	// Resources are listed and watched in all mailboxes.
	Resources []schema.GroupVersionResource
	Targets   []Target
	// ExtraLists are listed and watched without a use, so that a start needs as many lists as a hub's start.
	ExtraLists []Lists
}

// Lists are resources in all workspaces of a virtual workspace; Endpoint is its URL.
type Lists struct {
	Endpoint  string
	Resources []schema.GroupVersionResource
}

// Target is one target, with the logical cluster of its mailbox, and the resources to list and watch on the target.
type Target struct {
	Mailbox    string
	Kubeconfig []byte
	Resources  []schema.GroupVersionResource
}

// Operation is a command to a baseline syncer.
type Operation string

const (
	// Burst applies all objects of a namespace to their targets, and responds when all are applied.
	Burst Operation = "burst"
	// Follow applies each object of a namespace when it changes, and returns its status when that changes. It ends when
	// another namespace is followed.
	Follow Operation = "follow"
	// Place writes data.entry of an object into all mailboxes that have the object, and applies the object to each target
	// after its mailbox. It responds when all are applied.
	Place Operation = "place"
	// Noop only returns a response.
	Noop Operation = "nothing"
)

// Request is a request to a baseline syncer.
type Request struct {
	Operation Operation
	Resource  schema.GroupVersionResource
	Namespace string
	// Workers is the number of concurrent requests to one target for [Burst], and of all concurrent requests for [Place].
	Workers int
	// Name is the object to [Place], and Entry its new data.entry.
	Name, Entry string
}

// Response is the result of a request.
type Response struct {
	Error   string
	Objects int
	// Elapsed is the duration of the request, and CPU the CPU time of the process since its start.
	Elapsed, CPU time.Duration
}
