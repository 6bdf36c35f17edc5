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

package explain

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/manifests"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// facts reads all facts that are readable. It returns an error only if the question makes no sense.
func (o *explainOptions) facts(ctx context.Context, workspace client.Client, syncTarget *edgev2alpha1.SyncTarget, resource string, key types.NamespacedName) (*Facts, error) {
	facts := &Facts{Now: time.Now(), SyncTarget: syncTarget, Key: key}
	if err := o.readPublished(ctx, facts); err != nil {
		return nil, err
	}
	below, err := o.targetReader(ctx, workspace, syncTarget)
	if err != nil && o.target.Kubeconfig != "" {
		return nil, err
	}
	facts.Target.Err = err
	if facts.Served.Err = o.readMailbox(ctx, facts, resource); facts.Served.Err != nil {
		facts.Resource = guessResource(below, resource)
	}
	if served := facts.Served.Value; served != nil && served.Namespaced != (facts.Key.Namespace != "") {
		return nil, namespaceError(facts.Resource, served.Namespaced)
	}
	if facts.Target.Err == nil {
		facts.Target = readTarget(ctx, below, facts)
	}
	return facts, nil
}

// namespaceError returns the error for a name with a namespace that must not have one, or the reverse.
func namespaceError(resource schema.GroupResource, namespaced bool) error {
	if namespaced {
		return fmt.Errorf("%s are in namespaces: give NAMESPACE/NAME", resource)
	}
	return fmt.Errorf("%s are in no namespace: give the NAME only", resource)
}

// readPublished reads the PublishedResources from the files or the hosting cluster that the user names. Such a source must be readable.
// Without one, those that the hub shows in the workload workspace count until the mailbox is read.
func (o *explainOptions) readPublished(ctx context.Context, facts *Facts) error {
	o.useRules(facts, o.workloadRules, o.workloadRulesErr)
	switch {
	case len(o.files) > 0:
		found, err := manifests.Read(o.In, o.files)
		if err != nil {
			return err
		}
		facts.Published.Value = found.Published
	case o.hosting.IsSet():
		hosting, err := o.hosting.Client(o.Cluster)
		if err != nil {
			return err
		}
		var list synchubv1alpha1.PublishedResourceList
		if err := hosting.List(ctx, &list); err != nil {
			facts.Published.Err = fmt.Errorf("the hosting cluster cannot be read: %w", err)
		}
		facts.Published.Value = list.Items
	}
	return nil
}

// useRules takes what the hub shows of its rules. They do not replace PublishedResources that the user gave.
func (o *explainOptions) useRules(facts *Facts, rules *edgev2alpha1.SyncRulesStatus, err error) {
	if rules != nil {
		facts.Hub, facts.ProtectedNamespaces = rules.Hub, rules.ProtectedNamespaces
	}
	if len(o.files) == 0 && !o.hosting.IsSet() {
		facts.Published.Value, facts.Published.Err = cli.PublishedByRules(rules, err)
	}
}

// targetReader returns a reader for the cluster, with the kubeconfig that the user named or else with the hub's.
func (o *explainOptions) targetReader(ctx context.Context, workspace client.Client, syncTarget *edgev2alpha1.SyncTarget) (*cli.Reader, error) {
	if o.target.Kubeconfig != "" {
		return o.target.Reader()
	}
	return cli.ReaderByCredentials(ctx, workspace, syncTarget)
}

// guessResource returns the resource of an argument when the mailbox cannot resolve it. It asks the target, or else
// parses the argument literally.
func guessResource(target *cli.Reader, resource string) schema.GroupResource {
	if target != nil {
		if found, err := target.Find(resource); err == nil {
			return found.GroupResource()
		}
	}
	return parseResource(resource)
}

var isVersion = regexp.MustCompile(`^v[0-9]`)

// parseResource parses the name of a resource without a server: deployments.v1.apps, or deployments.apps.
func parseResource(resource string) schema.GroupResource {
	full, group := schema.ParseResourceArg(strings.ToLower(resource))
	if full != nil && isVersion.MatchString(full.Version) {
		return full.GroupResource()
	}
	return group
}

// readTarget reads the object at the location on the target to which the mailbox object belongs.
func readTarget(ctx context.Context, r *cli.Reader, facts *Facts) (observed Observed[*unstructured.Unstructured]) {
	place, err := facts.TargetRef()
	if err != nil {
		return observed
	}
	resource, err := place.ResourceOn(r.Mapper)
	if err != nil {
		observed.Err = err
		return observed
	}
	observed.Value, observed.Err = r.Get(ctx, resource, place.NamespacedName)
	return observed
}

// resolve returns the resource that an argument names, and how the workspace serves it. As in kubectl, the flag sets the namespace if the
// argument for the name has none.
func (o *explainOptions) resolve(workspace *cli.Reader, resource string, key *types.NamespacedName) (found schema.GroupVersionResource, served *publishedresource.API, err error) {
	if found, err = workspace.Find(resource); err != nil {
		return found, nil, err
	}
	served, err = workspace.Served(found.GroupResource())
	if served != nil && served.Namespaced && key.Namespace == "" {
		key.Namespace = *o.Cluster.Namespace
	}
	return found, served, err
}

// resolveInMailbox returns the resource that an argument names, and how the mailbox serves it. An argument for an API that acts inside
// kcp means its twin, if the mailbox has the twin of the object, or if the API itself is not published.
func (o *explainOptions) resolveInMailbox(ctx context.Context, mailbox *cli.Reader, facts *Facts, resource string) (found schema.GroupVersionResource, served *publishedresource.API, err error) {
	found, served, err = o.resolve(mailbox, resource, &facts.Key)
	named := found.GroupResource()
	if meta.IsNoMatchError(err) {
		named = parseResource(resource)
	}
	if _, hasTwin := policy.FindTwinned(named.Group, named.Resource, ""); !hasTwin {
		return found, served, err
	}
	twin, twinServed, twinErr := o.resolve(mailbox, named.Resource+"."+policy.TwinGroup, &facts.Key)
	if twinErr != nil {
		return found, served, err
	}
	isPublished := publishedresource.FindOldest(facts.Published.Value, publishedresource.InMailbox, named, "") != nil
	if object, _ := mailbox.Get(ctx, twin, facts.Key); object == nil && isPublished {
		return found, served, err
	}
	return twin, twinServed, nil
}

// readMailbox reads the facts in the mailbox. The error is the reason why the mailbox is not readable.
func (o *explainOptions) readMailbox(ctx context.Context, facts *Facts, resource string) error {
	status := facts.SyncTarget.Status.Mailbox
	if status == nil || status.Cluster == "" {
		return errors.New("there is none yet")
	}
	mailbox, err := o.ReaderIn(status.Cluster)
	if err != nil {
		return err
	}
	if _, err := mailbox.APIs.ServerGroups(); err != nil {
		return err
	}
	if rules, err := cli.ReadRules(ctx, mailbox); rules != nil || o.workloadRules == nil {
		o.useRules(facts, rules, err)
	}
	found, served, err := o.resolveInMailbox(ctx, mailbox, facts, resource)
	facts.Resource, facts.Served.Value = found.GroupResource(), served
	switch {
	case meta.IsNoMatchError(err):
		facts.Resource = parseResource(resource)
		return nil
	case err != nil, served == nil:
		return err
	}
	facts.Configs = ReadConfigs(ctx, mailbox)
	if facts.Served.Value.Namespaced == (facts.Key.Namespace != "") {
		readObject(ctx, mailbox, facts)
	}
	return nil
}

// ReadConfigs reads the configs that are not being deleted.
func ReadConfigs(ctx context.Context, r *cli.Reader) (seen Observed[Configs]) {
	var syncerConfigs edgev2alpha1.SyncerConfigList
	var edgeSyncConfigs edgev2alpha1.EdgeSyncConfigList
	seen.Err = errors.Join(r.Client.List(ctx, &syncerConfigs), r.Client.List(ctx, &edgeSyncConfigs))
	for i := range syncerConfigs.Items {
		if config := &syncerConfigs.Items[i]; config.DeletionTimestamp == nil {
			seen.Value.SyncerConfigs = append(seen.Value.SyncerConfigs, config)
		}
	}
	for i := range edgeSyncConfigs.Items {
		if config := &edgeSyncConfigs.Items[i]; config.DeletionTimestamp == nil {
			seen.Value.EdgeSyncConfigs = append(seen.Value.EdgeSyncConfigs, config)
		}
	}
	return seen
}

// readObject reads the object in the mailbox, its namespace and the events about it.
func readObject(ctx context.Context, r *cli.Reader, facts *Facts) {
	facts.Object.Value, facts.Object.Err = r.Get(ctx, facts.API(), facts.Key)
	namespace := corev1.NamespaceDefault
	if facts.Key.Namespace != "" {
		namespace = facts.Key.Namespace
		facts.Namespace.Value, facts.Namespace.Err = r.Get(ctx, cli.NamespacesResource, types.NamespacedName{Name: namespace})
	}
	// A user without the right to list events still gets the other facts.
	var events corev1.EventList
	if r.Client.List(ctx, &events, client.InNamespace(namespace), client.MatchingFields{"involvedObject.name": facts.Key.Name}) == nil {
		facts.Events = events.Items
	}
}
