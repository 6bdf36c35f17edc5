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
	// Label is on all that the bare syncer writes to targets, with the value true.
	Label = "bench.synchub.dev/bare"
	// markAnnotation is as long as a hub's mark.
	markAnnotation = "bench.synchub.dev/mark"
	fieldManager   = "bare"
)

// Config is what a bare syncer works with.
type Config struct {
	// Kubeconfig is the file of the hub's kcp user, Endpoint the URL of the mailboxes' virtual workspace.
	Kubeconfig, Endpoint string
	// Resources are listed and watched in all mailboxes.
	Resources []schema.GroupVersionResource
	Targets   []Target
	// ExtraLists is listed and watched as well, for nothing: so that a start takes as many lists as another does.
	ExtraLists []Lists
}

// Lists are resources of all workspaces of a virtual workspace, whose URL Endpoint is.
type Lists struct {
	Endpoint  string
	Resources []schema.GroupVersionResource
}

// Target is one target, with the logical cluster of its mailbox, and what is listed and watched there.
type Target struct {
	Mailbox    string
	Kubeconfig []byte
	Resources  []schema.GroupVersionResource
}

// Operation is what a bare syncer can be told to do.
type Operation string

const (
	// Burst applies all objects of a namespace to their targets, and answers when all are applied.
	Burst Operation = "burst"
	// Follow applies each object of a namespace when it changes, and returns its status when that changes, until another
	// namespace is followed.
	Follow Operation = "follow"
	// Noop only has it answer.
	Noop Operation = "nothing"
)

// Request tells a bare syncer to do something.
type Request struct {
	Operation Operation
	Resource  schema.GroupVersionResource
	Namespace string
	// Workers is how many requests for one target are in flight at once, for [Burst].
	Workers int
}

// Response says how it went.
type Response struct {
	Error   string
	Objects int
	// Elapsed is how long it took, CPU the processor time that the process has taken since it began.
	Elapsed, CPU time.Duration
}
