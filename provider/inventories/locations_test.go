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

package inventories

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kcp's informers call the handler without a reflector.
func TestLocationErrors(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, text string) { logged = append(logged, text) }, funcr.Options{Verbosity: 1})
	handle := locationErrorHandler(log)
	missing := apierrors.NewNotFound(schema.GroupResource{Group: "edge.kubestellar.io", Resource: "locations"}, "")
	for _, err := range []error{errors.New("connection refused"), missing, missing, errors.New("connection refused")} {
		handle(t.Context(), nil, err)
	}
	if len(logged) != 3 || slices.Equal(logged[:1], logged[1:2]) {
		t.Errorf("%q", logged)
	}
}
