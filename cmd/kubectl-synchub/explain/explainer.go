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
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/targetversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/inventories"
)

// explainer runs the steps. newExplainer computes the values that several steps need.
type explainer struct {
	facts *Facts
	stepList

	owner ownership.Owner
	// publishedResource is the PublishedResource in force. It is nil if there is none or it is unknown.
	publishedResource *synchubv1alpha1.PublishedResource
	// resource says how the hub syncs objects, as far as that is known. compileError is the error of the
	// PublishedResource.
	resource     plan.Resource
	compileError error
	matcher      *selection.Matcher
	// version says in which version the hub writes objects to the target, and why. It is empty if there is only one
	// version.
	version string

	// noDownsyncReason says why the hub never downsyncs the object. source is the mark of an upsynced object, which
	// names its original.
	noDownsyncReason plan.NoDownsyncReason
	source           *ownership.Mark
	// selected is the selection of the object itself, rather than as a related object.
	selected   selection.Selection
	isSelected bool
	// goesDown is set once a step has found that the hub downsyncs the object because of its own selection.
	goesDown bool

	targetRef    TargetRef
	targetRefErr error
	// observed is set if the target's object belongs to the hub. Otherwise notOwnedErr says who owns it.
	observed    *plan.TargetObject
	notOwnedErr error
}

func newExplainer(facts *Facts) *explainer {
	e := &explainer{facts: facts}
	e.owner = ownership.Owner{Hub: e.hub(), SyncTarget: facts.SyncTarget.UID, Sealer: ownership.InsecureSealer}
	e.resolvePublishedResource()
	e.matcher = selection.Compile(facts.Configs.Value.SyncerConfigs, facts.Configs.Value.EdgeSyncConfigs)
	e.chooseVersion()
	if object := facts.Object.Value; object != nil {
		e.noDownsyncReason = plan.WhyNotDownsynced(e.owner, object)
		if mark, err := e.owner.VerifyUp(object.GetAnnotations(), transform.SelfOf(object)); err == nil {
			e.source = &mark
		}
		e.selected, e.isSelected = e.resource.Selects(e.matcher, object)
	}
	e.targetRef, e.targetRefErr = e.resolveTargetRef()
	if target := facts.Target.Value; target != nil {
		mark, err := plan.TargetMark(e.owner, target)
		if e.notOwnedErr = err; err == nil {
			e.observed = e.resource.NewTargetObject(e.owner, e.mailbox(), target, mark)
		}
	}
	return e
}

func (e *explainer) mailbox() logicalcluster.Name {
	if mailbox := e.facts.SyncTarget.Status.Mailbox; mailbox != nil {
		return logicalcluster.Name(mailbox.Cluster)
	}
	return ""
}

// hub returns the UID of the hub. If the caller did not pass it, hub takes it from a mark that contains the UID of
// the SyncTarget.
func (e *explainer) hub() types.UID {
	if e.facts.Hub != "" {
		return e.facts.Hub
	}
	for _, object := range []*unstructured.Unstructured{e.facts.Target.Value, e.facts.Object.Value} {
		if object == nil {
			continue
		}
		mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
		if err == nil && mark.SyncTarget == e.facts.SyncTarget.UID {
			return mark.Hub
		}
	}
	return ""
}

// resolvePublishedResource finds the PublishedResource in force, and compiles how the hub syncs objects by it.
func (e *explainer) resolvePublishedResource() {
	api := e.api()
	e.publishedResource = publishedresource.FindOldest(e.facts.Published.Value, publishedresource.InMailbox, e.facts.Resource, api.Kind)
	if e.publishedResource == nil {
		e.resource = publishedresource.RelatedAPI(api)
		// If no PublishedResource could be read, assume that configs select the resource.
		e.resource.RelatedOnly = e.facts.Published.Err == nil
		return
	}
	api.Version = cmp.Or(publishedresource.InMailbox(&e.publishedResource.Spec).Version, api.Version)
	e.resource, e.compileError = publishedresource.NewCompiler().Compile(e.publishedResource, api)
	if e.compileError != nil {
		e.resource = publishedresource.RelatedAPI(api)
		e.resource.RelatedOnly = false
	}
}

// api returns the API in the mailbox, as far as it is known.
func (e *explainer) api() publishedresource.API {
	group := e.facts.Resource
	native, isNative := publishedresource.NativeAPI(synchubv1alpha1.ResourceDescriptor{Group: group.Group, Resource: group.Resource})
	served := e.facts.Served.Value
	switch {
	case served != nil:
		api := *served
		api.Native, api.Exported = isNative, !isNative
		return api
	case isNative:
		return native
	default:
		return publishedresource.API{GroupVersionResource: group.WithVersion(""), Namespaced: e.facts.Key.Namespace != "", Exported: true}
	}
}

// resolveTargetRef returns the location on the target to which the object is downsynced, or from which it was
// upsynced.
func (e *explainer) resolveTargetRef() (TargetRef, error) {
	object := e.facts.Object.Value
	switch {
	case e.source != nil:
		from := e.source.Source
		group := schema.GroupResource{Group: from.Group, Resource: from.Resource}
		return TargetRef{e.targetAPIFor(group), types.NamespacedName{Namespace: from.Namespace, Name: from.Name}}, nil
	case object != nil:
		name, err := e.downTransform().Name(object, e.syncSpec())
		return e.targetRefOf(name), err
	case e.resource.Rules != nil && e.resource.Rules.Naming != nil:
		return TargetRef{}, errors.New("its name there is made of the object in the mailbox, which is not there")
	default:
		return TargetRef{e.resource.TargetAPI(), e.facts.Key}, nil
	}
}

// targetAPIFor returns the API of a resource on the target.
func (e *explainer) targetAPIFor(group schema.GroupResource) plan.TargetAPI {
	if same := e.resource.TargetAPI(); same.GroupResource() == group {
		return same
	}
	return plan.TargetAPI{GroupVersionResource: group.WithVersion(e.lastVersion(group))}
}

// lastVersion returns the version in which the hub last used a resource of the target. It is empty if unknown.
func (e *explainer) lastVersion(group schema.GroupResource) string {
	for _, recorded := range e.facts.SyncTarget.Status.SyncedResources {
		if recorded.Group == group.Group && recorded.Resource == group.Resource && len(recorded.Versions) > 0 {
			return recorded.Versions[0]
		}
	}
	return ""
}

// chooseVersion finds the version in which the hub writes objects to the target, if there are several. The version
// that the hub used last shows which versions the target serves.
func (e *explainer) chooseVersion() {
	all := e.resource.TargetVersions()
	if served := e.facts.Served.Value; served != nil && e.publishedResource == nil {
		all = served.Versions
	}
	if len(all) < 2 {
		return
	}
	var by selection.NamedVersion
	if named := e.resource.NamedVersions(e.matcher); len(named) > 0 {
		by = named[0]
	}
	choice := targetversion.Choose(all, by.Version, targetversion.Target{Previous: e.lastVersion(e.resource.TargetAPI().GroupResource())})
	e.resource = e.resource.WithTargetVersion(choice.Version)
	switch choice.Reason {
	case targetversion.Named:
		e.version = fmt.Sprintf("on the cluster in version %s, which %s of %s names", choice.Version, by.Field, by.Config)
	case targetversion.Newest:
		e.version = fmt.Sprintf("on the cluster in version %s, since it does not serve %s", choice.Version, all[0])
	default:
		e.version = fmt.Sprintf("on the cluster in version %s, which is preferred to %s", choice.Version, strings.Join(all[1:], ", "))
	}
}

func (e *explainer) targetRefOf(name conversion.Name) TargetRef {
	resource := e.resource.TargetAPI()
	if resource.GroupVersion().WithKind(resource.Kind).GroupKind() != name.GVK.GroupKind() {
		// A conversion changes the kind. Only the target knows the resource of the new kind.
		resource = plan.TargetAPI{GroupVersionResource: name.GVK.GroupVersion().WithResource(""), Kind: name.GVK.Kind}
	}
	return TargetRef{resource, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}}
}

func (e *explainer) downTransform() transform.Down {
	return transform.Down{
		Owner: e.owner, Mailbox: e.mailbox().String(), SyncTarget: e.facts.SyncTarget.Name,
		Resource: e.resource.GroupResource(), Namespaced: e.resource.Namespaced,
		// Only the hub has the key, so explain compares no hashes.
		Hasher: ownership.NewHasher([]byte("explain")),
	}
}

// syncSpec returns the spec by which the hub syncs the object to the target.
func (e *explainer) syncSpec() transform.SyncSpec {
	syncSpec := e.resource.DownSpec(cmp.Or(e.selected.Policy, ownership.PolicyDelete), e.selected.Conversion)
	syncTarget := e.facts.SyncTarget
	syncSpec.Inputs.SyncTarget = mutation.SyncTarget(syncTarget.Name, syncTarget.Labels, inventories.ParameterAnnotations(syncTarget))
	if target := e.facts.Target.Value; target != nil {
		syncSpec.Inputs.Other = target.Object
	}
	return syncSpec
}

// relation returns the relation by which the hub downsynced the object. It is empty for an object that was selected
// itself.
func (e *explainer) relation() string {
	if e.observed != nil {
		return e.observed.Mark.Relation
	}
	return ""
}

// relatedEntries returns "<PublishedResource>/<identifier>" of each entry of related that can select objects of the
// resource.
func (e *explainer) relatedEntries() (names []string) {
	for _, candidate := range e.facts.Published.Value {
		related, _ := related.Compile(candidate.Spec.Related)
		for _, one := range related {
			if one != nil && one.Origin == synchubv1alpha1.RelatedOriginMailbox && one.InMailbox.GroupResource() == e.facts.Resource {
				names = append(names, candidate.Name+"/"+one.Identifier)
			}
		}
	}
	slices.Sort(names)
	return names
}
