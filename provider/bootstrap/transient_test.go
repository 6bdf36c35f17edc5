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

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/synchub-dev/synchub/apis/schemas"
)

// A new workspace may refuse requests, including discovery, for a moment. Other errors end the preparation at once. The
// test uses a fake client, since a real server does not return these errors on demand.
func TestTransientErrors(t *testing.T) {
	busy := fmt.Errorf("failed to get server groups: %w", apierrors.NewServiceUnavailable("not yet"))
	for name, test := range map[string]struct {
		first  error
		begins int
		fails  bool
	}{
		"not ready yet": {busy, 3, false},
		"broken":        {errors.New("broken"), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			double := interceptor.NewClient(fake.NewClientBuilder().WithScheme(Scheme()).Build(), interceptor.Funcs{
				Create: func(ctx context.Context, client client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if attempts++; attempts < 3 || test.fails {
						return test.first
					}
					return client.Create(ctx, object, options...)
				},
			})
			setup := &bootstrapper{Options: Options{Workspace: "root:synchub", Report: func(string, string) {}}, client: double}
			err := setup.ensureSchemas(t.Context())
			want := test.begins
			if !test.fails {
				want += len(schemas.InventorySchemas()) + len(schemas.MailboxSchemas()) + len(schemas.WorkloadSchemas()) - 1
			}
			if (err != nil) != test.fails || attempts != want {
				t.Errorf("after %d attempts, want %d: %v", attempts, want, err)
			}
		})
	}
}
