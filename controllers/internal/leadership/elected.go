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

package leadership

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Elected is closed once this replica leads, like the channel of a manager. A replica that loses the leadership
// ends. A nil Elected means that the replica always leads.
type Elected <-chan struct{}

// Leads reports whether this replica leads.
func (e Elected) Leads() bool {
	if e == nil {
		return true
	}
	select {
	case <-e:
		return true
	default:
		return false
	}
}

// Source returns a source that calls onElected once the replica leads, with the queue of the controller.
func Source[R comparable](e Elected, onElected func(workqueue.TypedRateLimitingInterface[R])) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
		if e == nil {
			return nil
		}
		go func() {
			select {
			case <-e:
				onElected(queue)
			case <-ctx.Done():
			}
		}()
		return nil
	})
}
