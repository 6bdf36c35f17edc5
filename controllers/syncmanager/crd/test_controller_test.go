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

package crd_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// runningController is a running controller.
type runningController struct {
	*crd.Controller
	// changes counts the calls of OnChange.
	changes atomic.Int64
	// stop stops the controller, and returns when it has ended.
	stop func()
}

// startController runs a controller for the target until the test ends.
func startController(t *testing.T, w *testTarget) *runningController {
	t.Helper()
	r := &runningController{}
	r.Controller = crd.New(crd.Options{
		Connection: w.Connection, Owner: testOwner, OnChange: func(schema.GroupResource) { r.changes.Add(1) }, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// waitForReason waits until the controller has the CRD in a state with the reason.
func (r *runningController) waitForReason(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, reason string) (state crd.State) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		state = r.state(crd)
		g.Expect(state.Reason).To(Equal(reason), "%+v", state)
	})
	return state
}

func (r *runningController) state(object *apiextensionsv1.CustomResourceDefinition) crd.State {
	for resource, state := range r.States() {
		if resource.String() == object.Name {
			return state
		}
	}
	return crd.State{}
}
