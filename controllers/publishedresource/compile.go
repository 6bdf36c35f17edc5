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

package publishedresource

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/aggregation"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/filter"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Compiler compiles PublishedResources to the resources that the hub syncs. It caches the compiled rules: as long as the
// rules do not change, it returns equal values. It is safe for concurrent use.
type Compiler struct {
	lock     gosync.Mutex
	compiled map[string]compiledRules
}

type compiledRules struct {
	spec  string
	rules *plan.Rules
}

// NewCompiler returns a compiler with an empty cache.
func NewCompiler() *Compiler { return &Compiler{compiled: map[string]compiledRules{}} }

// Compile compiles a PublishedResource for an API. The error names all invalid fields.
func (c *Compiler) Compile(published *synchubv1alpha1.PublishedResource, api API) (plan.Resource, error) {
	rules, err := c.compiledRules(published, api)
	if err != nil {
		return plan.Resource{}, err
	}
	spec := &published.Spec
	resource := newResource(api, projectedAPI(spec, api))
	resource.PublishedResource = published.Name
	resource.StatusReturn = resource.StatusReturn && (spec.StatusReturn == nil || *spec.StatusReturn)
	resource.SelectAll = spec.Select == synchubv1alpha1.SelectAll
	resource.Replace, resource.Adoption = spec.Replace, spec.Adoption
	resource.ReportsDrift = spec.Drift == synchubv1alpha1.DriftReport
	resource.InstallsCRD = spec.InstallCRD
	resource.Allowed = plan.Allowed{
		ProtectedNamespaces: spec.ProtectedNamespaces == synchubv1alpha1.ProtectedNamespacesAllow,
		PrivilegedUpsync:    spec.PrivilegedUpsync == synchubv1alpha1.PrivilegedUpsyncTargetGovernsMailbox,
	}
	resource.Rules = rules
	if deletion := spec.Deletion; deletion != nil {
		resource.Retain = resource.DeletesContents && !deletion.Cascade
		resource.Orphan = deletion.Policy == synchubv1alpha1.DeletionPolicyOrphan
		resource.WaitForTarget = deletion.WaitForTarget && api.Exported
	}
	return resource, nil
}

// CompileServed compiles the effective PublishedResource for a resource of a mailbox, as its users see the
// rules. served is the API that the mailbox serves, or nil if it does not; its fields Native and Exported are
// ignored. The PublishedResource is nil if there is none.
func CompileServed(all []synchubv1alpha1.PublishedResource, resource schema.GroupResource, served *API) (*synchubv1alpha1.PublishedResource, plan.Resource, error) {
	api, isNative := NativeAPI(synchubv1alpha1.ResourceDescriptor{Group: resource.Group, Resource: resource.Resource})
	switch {
	case served != nil:
		api = *served
		api.Native, api.Exported = isNative, !isNative
	case !isNative:
		api = API{GroupVersionResource: resource.WithVersion(""), Exported: true}
	}
	published := FindOldest(all, InMailbox, resource, api.Kind)
	if published == nil {
		return nil, RelatedAPI(api), nil
	}
	api.Version = cmp.Or(InMailbox(&published.Spec).Version, api.Version)
	compiled, err := NewCompiler().Compile(published, api)
	if err != nil {
		return published, RelatedAPI(api), err
	}
	return published, compiled, nil
}

// RelatedAPI returns the resource of an API without a PublishedResource, which is synced only for related objects.
func RelatedAPI(api API) plan.Resource {
	resource := newResource(api, plan.TargetAPI{})
	resource.RelatedOnly = true
	return resource
}

// UnpublishingAPI returns the resource of an API that is no longer published. The hub only removes finalizers
// from its objects.
func UnpublishingAPI(published string, api API) plan.Resource {
	return plan.Resource{
		PublishedResource: published, GroupVersionResource: api.GroupVersionResource, Kind: api.Kind,
		Namespaced: api.Namespaced, Exported: api.Exported, Unpublishing: true,
	}
}

// newResource returns the resource of an API with the defaults of all rules.
func newResource(api API, projected plan.TargetAPI) plan.Resource {
	resource := plan.Resource{
		GroupVersionResource: api.GroupVersionResource,
		Kind:                 api.Kind,
		Projected:            projected,
		Namespaced:           api.Namespaced,
		StatusSubresource:    api.StatusSubresource,
		StatusReturn:         !api.Native,
		Native:               api.Native,
		Exported:             api.Exported,
	}
	_, resource.DeletesContents = containers[resource.TargetAPI().GroupResource()]
	resource.Retain = resource.DeletesContents
	return resource
}

// projectedAPI returns the names of the API on targets, or zero if they are the same as in mailboxes.
func projectedAPI(spec *synchubv1alpha1.PublishedResourceSpec, api API) plan.TargetAPI {
	same := plan.TargetAPI{GroupVersionResource: api.GroupVersionResource, Kind: api.Kind}
	target := same
	target.Group = spec.Resource.Group
	if projection := projectionOf(spec); projection != nil {
		if projection.Plural != "" {
			target.Resource = spec.Resource.Resource
		}
		if projection.Kind != "" {
			target.Kind = spec.Resource.Kind
		}
		if projection.Version != "" {
			target.Version = spec.Resource.Version
		}
	}
	if target == same {
		return plan.TargetAPI{}
	}
	return target
}

// compiledRules returns the cached rules, or compiles and caches them. The creation time decides between relations that
// contradict each other.
func (c *Compiler) compiledRules(published *synchubv1alpha1.PublishedResource, api API) (*plan.Rules, error) {
	name, created, spec := published.Name, published.CreationTimestamp.Time, &published.Spec
	key, err := json.Marshal([]any{created, spec.Filter, spec.Naming, spec.Mutation, spec.IgnoreFields, spec.NamespaceReferences, spec.Related, spec.Health, spec.StatusAggregation, spec.StatusExpression, api.Versions})
	if err != nil {
		return nil, err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if before, ok := c.compiled[name]; ok && before.spec == string(key) {
		return before.rules, nil
	}
	rules, err := compileRules(spec, api)
	if err != nil {
		return nil, err
	}
	for _, relation := range rules.Related {
		relation.Created = created
	}
	c.compiled[name] = compiledRules{spec: string(key), rules: rules}
	return rules, nil
}

// RetainOnly removes the cached rules of PublishedResources for which keep returns false.
func (c *Compiler) RetainOnly(keep func(string) bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for name := range c.compiled {
		if !keep(name) {
			delete(c.compiled, name)
		}
	}
}

func compileRules(spec *synchubv1alpha1.PublishedResourceSpec, api API) (*plan.Rules, error) {
	rules := &plan.Rules{Versions: api.Versions, Texts: ruleTexts(spec)}
	var wrong fieldErrors
	var err error
	rules.Filter, err = filter.Compile(spec.Filter)
	wrong.add("spec.filter.", err)
	rules.Naming, err = naming.Compile(spec.Naming)
	wrong.add("spec.naming.", err)
	if spec.Mutation != nil {
		rules.Down, err = mutation.Compile(spec.Mutation.Down)
		wrong.add("spec.mutation.down", err)
		rules.Up, err = mutation.Compile(spec.Mutation.Up)
		wrong.add("spec.mutation.up", err)
	}
	for i, field := range spec.IgnoreFields {
		parsed, err := fieldpath.Parse(string(field.Path))
		wrong.add(fmt.Sprintf("spec.ignoreFields[%d].path: ", i), err)
		rules.IgnoredFields = append(rules.IgnoredFields, transform.IgnoredField{Path: parsed, OnCreate: field.OnCreate == nil || *field.OnCreate})
	}
	rules.NamespaceReferences, err = tenancy.CompileReferences(api.GroupResource(), spec.NamespaceReferences)
	wrong.add("spec.", err)
	rules.Health, err = health.Compile(spec.Health)
	wrong.add("spec.health.", err)
	rules.Aggregation, err = aggregation.Compile(spec, api.GroupResource())
	wrong.add("spec.", err)
	rules.Related, err = related.Compile(spec.Related)
	wrong.add("spec.", err)
	return rules, errors.Join(wrong...)
}

// ruleTexts returns the rules that restrict downsync, as JSON.
func ruleTexts(spec *synchubv1alpha1.PublishedResourceSpec) plan.RuleTexts {
	text := func(rule any, absent bool) string {
		if absent {
			return ""
		}
		// Marshalling an API type never fails.
		content, _ := json.Marshal(rule)
		return string(content)
	}
	confinement := plan.RuleTexts{Naming: text(spec.Naming, spec.Naming == nil), Filter: text(spec.Filter, spec.Filter == nil)}
	if spec.Mutation != nil {
		confinement.Mutation = text(spec.Mutation.Down, len(spec.Mutation.Down) == 0)
	}
	return confinement
}

// fieldErrors are errors that each start with the name of a field.
type fieldErrors []error

// add appends an error, or each error that it joins. The text of each starts with the rest of the field's name.
func (m *fieldErrors) add(field string, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, one := range all {
		*m = append(*m, fmt.Errorf("%s%w", field, one))
	}
}
