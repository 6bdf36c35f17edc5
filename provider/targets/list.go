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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// pageSize is the number of objects in a page.
	pageSize = 500
	// maxConcurrentPages bounds the pages that the informers of one target read at once: an object takes memory before it is
	// counted.
	maxConcurrentPages = 4
)

// listLimited lists a page once fewer than maxConcurrentPages are being read.
func (w *Watches) listLimited(ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (runtime.Object, error)) (runtime.Object, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case w.pageSemaphore <- struct{}{}:
		defer func() { <-w.pageSemaphore }()
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	ctx, decoded := transport.WithSlot(ctx)
	defer decoded()
	return listPage(ctx, options, list)
}

// withTimeout returns a context for requests with a timeout. The caller calls done when it has decoded the answers.
func withTimeout(ctx context.Context, timeout time.Duration) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	ctx, decoded := transport.WithSlot(ctx)
	return ctx, func() {
		decoded()
		cancel()
	}
}

// listPage lists a page. If the page is larger than a response may be, it requests smaller ones, down to one object. It requests
// the current state, because an API server does not divide a list from its watch cache into pages.
func listPage[L any](ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (L, error)) (L, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	if options.Limit == 0 {
		options.Limit = pageSize
	}
	return transport.ListPage(ctx, &options, list)
}
