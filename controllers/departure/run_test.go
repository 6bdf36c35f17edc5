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

package departure

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// down is a double of a target that is not up, as one is behind which another cluster answers. Any request to it fails the test by
// a nil pointer.
type down struct{ Target }

func (down) WaitUp(context.Context) error { return context.DeadlineExceeded }

// A departure asks nothing of a target, and removes nothing there, before that is up.
func TestRunWaitsForTheTarget(t *testing.T) {
	err := Run(t.Context(), Options{Target: down{}, Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}, Clock: clock.RealClock{}, Log: logr.Discard()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
