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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// pageSize is how many objects a page has.
	pageSize = 500
	// maxConcurrentPages is how many pages the informers of one target read at once: before an object is counted it takes memory, too.
	maxConcurrentPages = 4
)

// listLimited lists a page when no more than a few others are being read.
func (c *Connection) listLimited(ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (runtime.Object, error)) (runtime.Object, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c.pageSemaphore <- struct{}{}:
		defer func() { <-c.pageSemaphore }()
	}
	ctx, decoded := transport.WithSlot(ctx)
	defer decoded()
	return listPage(ctx, options, list)
}

// withTimeout returns the context of requests of which nothing is read or decoded any more when done is called.
func withTimeout(ctx context.Context, timeout time.Duration) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	ctx, decoded := transport.WithSlot(ctx)
	return ctx, func() {
		decoded()
		cancel()
	}
}

// ListMetadata returns one page of the metadata of the objects of a namespace, or of all if that is empty, that the selector chooses;
// the empty selector chooses all. next is empty for the first page, and what the page before says for the others.
func (c *Connection) ListMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace, selector, next string) (*metav1.PartialObjectMetadataList, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize, Continue: next}
	list, err := listPage(ctx, options, c.metadata.Resource(resource).Namespace(namespace).List)
	if err != nil {
		return nil, fmt.Errorf("cannot list %s%s: %w", resource.Resource, inNamespace(namespace), c.credentials.Error(err))
	}
	return list, nil
}

// listPage lists a page. One that is larger than an answer may be is asked for in smaller parts, down to one object. Of lists
// from the memory of an API server there are no pages, so it is asked for the present state.
func listPage[L any](ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (L, error)) (L, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	if options.Limit == 0 {
		options.Limit = pageSize
	}
	return transport.ListPage(ctx, &options, list)
}
