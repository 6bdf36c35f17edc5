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

package publish

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// ReadyWait waits until PublishedResources are ready.
type ReadyWait struct {
	*cli.InventoryOptions
	Hosting client.WithWatch
	cli.WaitFlags
	// HasOldSchema reports whether the hub has not replaced the schema since the command changed the definition. Nil means
	// that no definition was changed.
	HasOldSchema func(*synchubv1alpha1.PublishedResource) bool
}

// Run waits until the PublishedResources are ready. After the timeout it returns an error with the reason for each that is not.
func (w *ReadyWait) Run(ctx context.Context, publications []Publication) error {
	if len(publications) == 0 {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, w.Limit())
	defer cancel()
	unready := map[string]string{}
	for _, found := range publications {
		unready[found.Name()] = "the hub has not reported anything yet"
	}
	_, err := toolswatch.UntilWithSync(waiting, registration.ListWatch(w.Hosting, &synchubv1alpha1.PublishedResourceList{}), &synchubv1alpha1.PublishedResource{}, nil, func(event watch.Event) (bool, error) {
		if seen, ok := event.Object.(*synchubv1alpha1.PublishedResource); ok {
			w.updateUnready(seen, unready)
		}
		return len(unready) == 0, nil
	})
	if len(unready) == 0 {
		return nil
	}
	if waiting.Err() == nil || ctx.Err() != nil {
		return err
	}
	var problems []error
	for _, found := range publications {
		if problem, ok := unready[found.Name()]; ok {
			problems = append(problems, fmt.Errorf("the PublishedResource %s was not ready after %s: %s", found.Name(), w.Timeout, problem))
		}
	}
	return errors.Join(problems...)
}

// updateUnready records in unready why a PublishedResource is not ready.
func (w *ReadyWait) updateUnready(seen *synchubv1alpha1.PublishedResource, unready map[string]string) {
	if _, ok := unready[seen.Name]; !ok {
		return
	}
	ready := meta.FindStatusCondition(seen.Status.Conditions, synchubv1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration < seen.Generation:
	case ready.Status != metav1.ConditionTrue:
		unready[seen.Name] = ready.Reason + ": " + ready.Message
	case w.HasOldSchema != nil && w.HasOldSchema(seen):
		unready[seen.Name] = "the hub has not replaced the former schema yet"
	default:
		delete(unready, seen.Name)
		w.Progress("the PublishedResource %s is ready: mailboxes get the API within seconds", seen.Name)
	}
}
