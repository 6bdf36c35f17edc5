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

package status

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestPatchResult(t *testing.T) {
	resource := schema.GroupResource{Resource: "synctargets"}
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		want reconcile.Result
		// fails is true if ResultOf returns the error.
		fails bool
	}{
		"written":                {nil, reconcile.Result{}, false},
		"gone":                   {apierrors.NewNotFound(resource, "x"), reconcile.Result{}, false},
		"gone, wrapped":          {fmt.Errorf("cannot: %w", apierrors.NewNotFound(resource, "x")), reconcile.Result{}, false},
		"a lost race":            {apierrors.NewConflict(resource, "x", errors.New("modified")), reconcile.Result{RequeueAfter: conflictRetry}, false},
		"a lost race, wrapped":   {fmt.Errorf("cannot: %w", apierrors.NewConflict(resource, "x", errors.New("modified"))), reconcile.Result{RequeueAfter: conflictRetry}, false},
		"forbidden":              {forbidden, reconcile.Result{}, true},
		"exists, which is wrong": {apierrors.NewAlreadyExists(resource, "x"), reconcile.Result{}, true},
		"something else":         {errors.New("oops"), reconcile.Result{}, true},
	} {
		got, err := PatchResult(test.err)
		if got != test.want || (err != nil) != test.fails || test.fails && !errors.Is(err, test.err) {
			t.Errorf("%s: want %v, got %v, %v", name, test.want, got, err)
		}
	}
}
