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

package syncrules

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// pollInterval is how often the controller finds new workspaces. That takes no request.
	pollInterval = 15 * time.Second
	// compareInterval is how often the controller reads all SyncRules, to undo changes by other writers.
	compareInterval = 10 * time.Minute
	// passDuration bounds the writes of one pass, so that later passes write the then current rules.
	passDuration = 5 * time.Second
	// writePause is the pause after each write: a change of a rule is written to every workspace.
	writePause = 20 * time.Millisecond
)

var resource = edgev2alpha1.SchemeGroupVersion.WithResource("syncrules")

// request is the only request of the controller.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Workspaces is the part of [mailboxes.Mailboxes] that the controller uses of mailboxes, and of workload workspaces.
type Workspaces interface {
	// Bound returns the workspaces that have bound a resource.
	Bound(resource schema.GroupResource) []logicalcluster.Name
	// ListUncached calls visit for each object of a resource in all workspaces.
	ListUncached(ctx context.Context, resource schema.GroupVersionResource, visit func(logicalcluster.Name, *unstructured.Unstructured)) error
	// Client returns a client for a workspace; ok is false if there is none now.
	Client(workspace logicalcluster.Name) (client dynamic.Interface, ok bool)
}

// Options configure a [Controller].
type Options struct {
	// Hosting is the cluster that contains the PublishedResources. Hub is the owner of the published rules.
	Hosting client.Reader
	Hub     publishedresource.Hub
	// ProtectedNamespaces are the protected namespaces of the hub.
	ProtectedNamespaces []string
	// Workspaces are the mailboxes, and the workload workspaces.
	Workspaces []Workspaces
	Clock      clock.Clock
}

// Controller keeps the SyncRules of all workspaces equal to the rules of the hub. It runs on the leader only.
type Controller struct {
	Options
	published []*published
}

// published records the rules that the workspaces of one kind have.
type published struct {
	Workspaces
	hashes map[logicalcluster.Name]hash
	// comparedAt is the time of the last complete comparison; zero if there was none.
	comparedAt time.Time
}

// hash is the hash of a status.
type hash [sha256.Size]byte

// New returns a controller.
func New(options Options) *Controller {
	c := &Controller{Options: options}
	for _, workspaces := range options.Workspaces {
		c.published = append(c.published, &published{Workspaces: workspaces, hashes: map[logicalcluster.Name]hash{}})
	}
	return c
}

// Register adds the controller to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	return builder.ControllerManagedBy(hosting).
		Named("syncrules").
		Watches(&synchubv1alpha1.PublishedResource{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} })).
		Complete(c)
}

// Reconcile writes the SyncRules of the workspaces whose rules differ.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx = requestclass.With(ctx, requestclass.Background)
	var list synchubv1alpha1.PublishedResourceList
	if err := c.Hosting.List(ctx, &list); err != nil {
		return reconcile.Result{}, err
	}
	status, err := publishedresource.SyncRulesOf(c.Hub, c.ProtectedNamespaces, list.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired, err := json.Marshal(status)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted, err := hashOf(desired)
	if err != nil {
		return reconcile.Result{}, err
	}
	var errs []error
	deadline := c.Clock.Now().Add(passDuration)
	for _, kind := range c.published {
		errs = append(errs, c.compare(ctx, kind))
		isComplete, err := c.write(ctx, kind, desired, wanted, deadline)
		errs = append(errs, err)
		if !isComplete {
			return reconcile.Result{RequeueAfter: time.Millisecond}, errors.Join(errs...)
		}
	}
	return reconcile.Result{RequeueAfter: pollInterval}, errors.Join(errs...)
}

// compare reads all SyncRules of a kind of workspaces, if the last time was long ago.
func (c *Controller) compare(ctx context.Context, kind *published) error {
	if c.Clock.Since(kind.comparedAt) < compareInterval || len(kind.Bound(resource.GroupResource())) == 0 {
		return nil
	}
	found := map[logicalcluster.Name]hash{}
	err := kind.ListUncached(ctx, resource, func(workspace logicalcluster.Name, object *unstructured.Unstructured) {
		if object.GetName() == edgev2alpha1.SyncRulesName {
			found[workspace] = statusHash(object)
		}
	})
	if err != nil {
		return fmt.Errorf("cannot list the SyncRules: %w", err)
	}
	kind.hashes, kind.comparedAt = found, c.Clock.Now()
	return nil
}

// statusHash returns the hash of the status of SyncRules, which is zero if there is none.
func statusHash(object *unstructured.Unstructured) hash {
	content, err := json.Marshal(object.Object["status"])
	if err != nil {
		return hash{}
	}
	found, err := hashOf(content)
	if err != nil {
		return hash{}
	}
	return found
}

// hashOf returns the hash of a JSON object. It does not depend on the order of the fields.
func hashOf(content []byte) (hash, error) {
	var fields any
	if err := json.Unmarshal(content, &fields); err != nil {
		return hash{}, err
	}
	sorted, err := json.Marshal(fields)
	return sha256.Sum256(sorted), err
}

// write writes the SyncRules of the workspaces whose rules differ. It reports whether it has tried all of them
// before the deadline.
func (c *Controller) write(ctx context.Context, kind *published, desired []byte, wanted hash, deadline time.Time) (isComplete bool, err error) {
	var errs []error
	bound := map[logicalcluster.Name]struct{}{}
	for _, workspace := range kind.Bound(resource.GroupResource()) {
		bound[workspace] = struct{}{}
		before, isKnown := kind.hashes[workspace]
		if isKnown && before == wanted {
			continue
		}
		client, ok := kind.Client(workspace)
		if !ok {
			continue
		}
		if c.Clock.Now().After(deadline) {
			return false, errors.Join(errs...)
		}
		if err := writeRules(ctx, client.Resource(resource), isKnown, desired, wanted); err != nil {
			errs = append(errs, fmt.Errorf("cannot write the SyncRules of the workspace %s: %w", workspace, err))
			continue
		}
		kind.hashes[workspace] = wanted
		c.Clock.Sleep(writePause)
	}
	for workspace := range kind.hashes {
		if _, ok := bound[workspace]; !ok {
			delete(kind.hashes, workspace)
		}
	}
	return true, errors.Join(errs...)
}

// writeRules replaces the status of the SyncRules of a workspace, and creates them if they do not exist. If
// isKnown is false, it reads them first.
func writeRules(ctx context.Context, client dynamic.ResourceInterface, isKnown bool, status []byte, wanted hash) error {
	if !isKnown {
		found, err := client.Get(ctx, edgev2alpha1.SyncRulesName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return createRules(ctx, client, status)
		case err != nil:
			return err
		case statusHash(found) == wanted:
			return nil
		}
	}
	err := patchStatus(ctx, client, status)
	if apierrors.IsNotFound(err) {
		return createRules(ctx, client, status)
	}
	return err
}

func createRules(ctx context.Context, client dynamic.ResourceInterface, status []byte) error {
	rules := &unstructured.Unstructured{}
	rules.SetGroupVersionKind(edgev2alpha1.SchemeGroupVersion.WithKind("SyncRules"))
	rules.SetName(edgev2alpha1.SyncRulesName)
	if _, err := client.Create(ctx, rules, metav1.CreateOptions{}); err != nil {
		return err
	}
	return patchStatus(ctx, client, status)
}

func patchStatus(ctx context.Context, client dynamic.ResourceInterface, status []byte) error {
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/status","value":%s}]`, status)
	_, err := client.Patch(ctx, edgev2alpha1.SyncRulesName, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
