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

package transport

import (
	"context"
	"errors"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pageDivisor divides the limit of a page that was too large.
const pageDivisor = 8

// ListPage returns a page of at most options.Limit objects, which must not be zero. If the page exceeds the limits for
// responses, ListPage reduces options.Limit, down to one object, and requests the page again.
func ListPage[L any](ctx context.Context, options *metav1.ListOptions, list func(context.Context, metav1.ListOptions) (L, error)) (L, error) {
	for {
		found, err := list(ctx, *options)
		exceeded, ok := errors.AsType[*ExceededError](err)
		if !ok || !exceeded.Divisible {
			return found, err
		}
		options.Limit = max(options.Limit/pageDivisor, 1)
	}
}

// Pages returns the pages of a list, with at most options.Limit objects each. It divides a page that is too large, like [ListPage],
// and doubles the limit again for each later page. An error ends the sequence.
func Pages[L metav1.ListInterface](ctx context.Context, options metav1.ListOptions, list func(context.Context, metav1.ListOptions) (L, error)) iter.Seq2[L, error] {
	return func(yield func(L, error) bool) {
		for limit := options.Limit; ; options.Limit = min(2*options.Limit, limit) {
			page, err := ListPage(ctx, &options, list)
			if !yield(page, err) || err != nil {
				return
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				return
			}
		}
	}
}
