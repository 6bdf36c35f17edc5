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

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// errNoRules means that the hub has not written SyncRules.
var errNoRules = errors.New("the hub has not written any yet; it does so within seconds in a new workspace")

// ReadRules returns the rules that the hub shows in a workspace.
func ReadRules(ctx context.Context, r *Reader) (*edgev2alpha1.SyncRulesStatus, error) {
	object, err := r.Get(ctx, edgev2alpha1.SchemeGroupVersion.WithResource("syncrules"), types.NamespacedName{Name: edgev2alpha1.SyncRulesName})
	var rules edgev2alpha1.SyncRules
	if err == nil && object != nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &rules)
	}
	if err != nil || rules.Status.Hub == "" {
		return nil, fmt.Errorf("the SyncRules of the workspace cannot be read: %w", cmp.Or(err, errNoRules))
	}
	return &rules.Status, nil
}

// PublishedByRules returns the PublishedResources that rules describe. With an error, there may be more. err is the error
// of the rules.
func PublishedByRules(rules *edgev2alpha1.SyncRulesStatus, err error) ([]synchubv1alpha1.PublishedResource, error) {
	if err != nil {
		return nil, err
	}
	found, absent, err := publishedresource.FromSyncRules(rules)
	if len(absent) > 0 {
		err = errors.Join(err, fmt.Errorf("the rules are too large for the workspace: the rules of %s are missing", strings.Join(absent, ", ")))
	}
	return found, err
}
