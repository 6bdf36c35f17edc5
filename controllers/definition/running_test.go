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

package definition_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/definition"
)

// running is a keeper that runs.
type running struct {
	*definition.Keeper
	// changes counts the calls of Changed.
	changes atomic.Int64
	// stop ends it, and returns when it has ended.
	stop func()
}

// keep runs a keeper for the way's target while the test lasts.
func keep(t *testing.T, w *way) *running {
	t.Helper()
	r := &running{}
	r.Keeper = definition.New(definition.Options{
		Connection: w.Connection, Owner: us, Changed: func() { r.changes.Add(1) }, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(r.stop)
	return r
}

// reaches waits until the keeper says something of the definition.
func (r *running) reaches(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, reason string) (state definition.State) {
	t.Helper()
	eventually(t, func(g Gomega) {
		state = r.state(crd)
		g.Expect(state.Reason).To(Equal(reason), "%+v", state)
	})
	return state
}

func (r *running) state(crd *apiextensionsv1.CustomResourceDefinition) definition.State {
	for resource, state := range r.States() {
		if resource.String() == crd.Name {
			return state
		}
	}
	return definition.State{}
}
