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

package get

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// acceptTable requests a table, or objects from a server that makes no tables.
	acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

	// mailboxesRole is the section of the documentation with the role for --all-mailboxes.
	mailboxesRole = "\"Read all mailboxes at once\" in docs/operations.md"
)

var endpointSlicesResource = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiexportendpointslices"}

// objectFilter selects objects. kcp evaluates the labels and most fields. The client evaluates names and namespaces: for
// a list across mailboxes, kcp returns nothing if the field selector names a namespace or a cluster-scoped object.
type objectFilter struct {
	labels string
	fields fields.Selector
	// metadata are the requirements on metadata.name and metadata.namespace.
	metadata fields.Selector
	// names and namespace select all objects if they are empty.
	names     []string
	namespace string
}

func newObjectFilter(labels string, selected fields.Selector, names []string) *objectFilter {
	var server, client []fields.Selector
	for _, term := range selected.Requirements() {
		selector := fields.OneTermEqualSelector(term.Field, term.Value)
		if term.Operator == selection.NotEquals {
			selector = fields.OneTermNotEqualSelector(term.Field, term.Value)
		}
		if term.Field == metav1.ObjectNameField || term.Field == "metadata.namespace" {
			client = append(client, selector)
		} else {
			server = append(server, selector)
		}
	}
	return &objectFilter{labels: labels, fields: fields.AndSelectors(server...), metadata: fields.AndSelectors(client...), names: names}
}

// matches evaluates names and namespaces.
func (f *objectFilter) matches(object metav1.Object) bool {
	name, namespace := object.GetName(), object.GetNamespace()
	return (len(f.names) == 0 || slices.Contains(f.names, name)) && (f.namespace == "" || f.namespace == namespace) &&
		f.metadata.Matches(fields.Set{metav1.ObjectNameField: name, "metadata.namespace": namespace})
}

// listOptions returns the options for a list, or for a watch from a resourceVersion.
func (f *objectFilter) listOptions(watched bool, version string) *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: f.labels, FieldSelector: f.fields.String(), Watch: watched, ResourceVersion: version}
}

// mailboxObject is an object of a mailbox.
type mailboxObject struct {
	// content is the object. In a table it has only the metadata, unless the user sorts by another field.
	content *unstructured.Unstructured
	// row and columns are the object's part of the server's table. Both are nil if the server returned no table.
	row     []any
	columns []metav1.TableColumnDefinition
}

// mailboxObjects are the objects of all mailboxes. versions are the resourceVersions of the endpoints' lists.
type mailboxObjects struct {
	objects  []mailboxObject
	versions []string
}

// mailboxesReader reads one resource in all mailboxes, with the rights of the user.
type mailboxesReader struct {
	endpoints []*mailboxesEndpoint
	resource  schema.GroupVersionResource
	kind      schema.GroupKind
	filter    *objectFilter
	// table requests tables. Their rows have whole objects if wholeObjects is set.
	table, wholeObjects bool
}

// mailboxesReader returns a reader for a resource as the user writes it.
func (o *getAllOptions) mailboxesReader(ctx context.Context, provider *cli.Reader, name string, filter *objectFilter) (*mailboxesReader, error) {
	urls, err := o.endpointURLs(ctx, provider)
	if err != nil {
		return nil, err
	}
	made := &mailboxesReader{filter: filter, table: o.isHuman(), wholeObjects: *o.output.HumanReadableFlags.SortBy != ""}
	for _, text := range urls {
		endpoint, err := newMailboxesEndpoint(provider.Config, text)
		if err != nil {
			return nil, fmt.Errorf("the endpoint %q of the export %s: %w", text, synchubv1alpha1.MailboxExport, err)
		}
		made.endpoints = append(made.endpoints, endpoint)
	}
	// All endpoints serve the APIs of one export.
	err = made.find(ctx, name, provider)
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("no mailbox serves %q: publish it with a PublishedResource, or correct the name", name)
	case err != nil:
		return nil, o.explainForbidden(err, "read the APIs of the mailboxes")
	}
	return made, nil
}

// find sets the resource, its kind, and whether the namespace matters.
func (r *mailboxesReader) find(ctx context.Context, name string, provider *cli.Reader) (err error) {
	endpoint := r.endpoints[0]
	// The discovery client logs an error and replaces its text, so this request comes before.
	if err := endpoint.requests.Get().AbsPath("apis").Do(ctx).Error(); err != nil {
		return err
	}
	if r.resource, err = endpoint.find(name, provider); err != nil {
		return err
	}
	api, err := endpoint.apis.Served(r.resource.GroupResource())
	if err != nil || api == nil {
		return err
	}
	r.kind = schema.GroupKind{Group: r.resource.Group, Kind: api.Kind}
	if !api.Namespaced {
		r.filter.namespace = ""
	}
	return nil
}

// endpointURLs returns the URLs of the mailbox export's endpoints.
func (o *getAllOptions) endpointURLs(ctx context.Context, provider *cli.Reader) (urls []string, err error) {
	slice, err := provider.Get(ctx, endpointSlicesResource, types.NamespacedName{Name: synchubv1alpha1.MailboxExport})
	switch {
	case err != nil:
		return nil, o.explainForbidden(err, "read the endpoints of the export "+synchubv1alpha1.MailboxExport)
	case slice == nil:
		return nil, fmt.Errorf("the workspace %s has no export %s: name the hub's provider workspace with --provider-workspace", o.provider, synchubv1alpha1.MailboxExport)
	}
	endpoints, _, err := unstructured.NestedSlice(slice.Object, "status", "endpoints")
	if err != nil {
		return nil, err
	}
	for _, endpoint := range endpoints {
		if fields, ok := endpoint.(map[string]any); ok {
			url, _, _ := unstructured.NestedString(fields, "url")
			urls = append(urls, url)
		}
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("the export %s of the workspace %s has no endpoint: there is no mailbox yet", synchubv1alpha1.MailboxExport, o.provider)
	}
	return urls, nil
}

// explainForbidden adds to an error which role the user lacks, if that is the cause.
func (o *getAllOptions) explainForbidden(err error, what string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	return fmt.Errorf("you may not %s: let an administrator of the provider workspace %s grant you the role of %s, or name another with --provider-workspace: %w", what, o.provider, mailboxesRole, err)
}

// list sends one list request to each endpoint.
func (r *mailboxesReader) list(ctx context.Context) (*mailboxObjects, error) {
	found := &mailboxObjects{}
	for _, endpoint := range r.endpoints {
		answer, err := r.request(endpoint, false, "").Do(ctx).Get()
		if err != nil {
			return nil, r.explain(err, "list")
		}
		version, err := endpoint.append(found, answer)
		if err != nil {
			return nil, err
		}
		found.versions = append(found.versions, version)
	}
	found.objects = slices.DeleteFunc(found.objects, func(object mailboxObject) bool { return !r.filter.matches(object.content) })
	return found, nil
}

// explain adds to an error of a request what failed, and which role the user lacks.
func (r *mailboxesReader) explain(err error, verb string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("cannot %s %s of all mailboxes: %w", verb, r.resource.GroupResource(), err)
	}
	return fmt.Errorf("you may not %s %s of all mailboxes: the role of %s has the verb %s on apiexports/content: %w", verb, r.resource.GroupResource(), mailboxesRole, verb, err)
}

// request returns a request for all mailboxes of an endpoint.
func (r *mailboxesReader) request(endpoint *mailboxesEndpoint, watched bool, version string) *rest.Request {
	path := []string{"apis", r.resource.Group, r.resource.Version, r.resource.Resource}
	if r.resource.Group == "" {
		path = []string{"api", r.resource.Version, r.resource.Resource}
	}
	request := endpoint.requests.Get().AbsPath(path...).
		SpecificallyVersionedParams(r.filter.listOptions(watched, version), runtime.NewParameterCodec(cli.Scheme), schema.GroupVersion{Version: "v1"})
	if r.table {
		request.SetHeader("Accept", acceptTable)
		if r.wholeObjects {
			request.Param("includeObject", string(metav1.IncludeObject))
		}
	}
	return request
}

// watch calls show with each object that changes after the lists of the resourceVersions, until the context ends.
func (r *mailboxesReader) watch(ctx context.Context, versions []string, show func(mailboxObject) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan endpointEvent)
	for i, endpoint := range r.endpoints {
		source, err := r.request(endpoint, true, versions[i]).Watch(ctx)
		if err != nil {
			return r.explain(err, "watch")
		}
		defer source.Stop()
		go endpoint.forward(ctx, source, events)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-events:
			// The end of the context ends the watches too.
			if err := r.show(event, show); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// show calls the function with the objects of an event that the filter selects.
func (r *mailboxesReader) show(event endpointEvent, show func(mailboxObject) error) error {
	switch {
	case event.ended:
		return errors.New("the server has ended the watch; run the command again")
	case event.Type == watch.Error:
		return r.explain(apierrors.FromObject(event.Object), "watch")
	}
	changed := &mailboxObjects{}
	if _, err := event.endpoint.append(changed, event.Object); err != nil {
		return err
	}
	for _, object := range changed.objects {
		if !r.filter.matches(object.content) {
			continue
		}
		if err := show(object); err != nil {
			return err
		}
	}
	return nil
}

// mailboxesEndpoint is an endpoint of the mailbox export. It serves the mailboxes of one shard of kcp.
type mailboxesEndpoint struct {
	apis     *cli.Reader
	requests rest.Interface
	// columns are the columns of the latest table. Only the first event of a watch has columns.
	columns []metav1.TableColumnDefinition
}

// newMailboxesEndpoint returns the endpoint of a URL. Responses have the limits that the hub has for kcp.
func newMailboxesEndpoint(config *rest.Config, text string) (*mailboxesEndpoint, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	// The credentials of the user go there.
	if parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		return nil, errors.New("it is not the https URL of a server")
	}
	config = rest.CopyConfig(config)
	parsed = parsed.JoinPath("clusters", "*")
	config.Host = parsed.String()
	config.Wrap(transport.LimitResponses(transport.Options{Limits: transport.KCPLimits(), BasePath: parsed.Path}))
	apis, err := cli.NewReader(config)
	if err != nil {
		return nil, err
	}
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, apis.Requests)
	if err != nil {
		return nil, err
	}
	return &mailboxesEndpoint{apis: apis, requests: requests}, nil
}

// find returns the resource for an argument that kubectl accepts. An endpoint does not serve the short names of resources
// that kcp has itself, such as cm, but the provider workspace does.
func (e *mailboxesEndpoint) find(name string, provider *cli.Reader) (schema.GroupVersionResource, error) {
	found, err := e.apis.Find(name)
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	if alias, aliasErr := provider.Find(name); aliasErr == nil {
		return e.apis.Find(alias.GroupResource().String())
	}
	return found, err
}

// append adds the objects of a table, of a list, or a single object. It returns the resourceVersion of the list.
func (e *mailboxesEndpoint) append(to *mailboxObjects, answer runtime.Object) (version string, err error) {
	switch found := answer.(type) {
	case *unstructured.UnstructuredList:
		for i := range found.Items {
			to.objects = append(to.objects, mailboxObject{content: &found.Items[i]})
		}
		return found.GetResourceVersion(), nil
	case *unstructured.Unstructured:
		if found.GroupVersionKind() != metav1.SchemeGroupVersion.WithKind("Table") {
			to.objects = append(to.objects, mailboxObject{content: found})
			return "", nil
		}
		table := &metav1.Table{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, table); err != nil {
			return "", fmt.Errorf("cannot read the server's table: %w", err)
		}
		return table.ResourceVersion, e.appendTable(to, table)
	default:
		return "", fmt.Errorf("the server has answered with %T instead of a list", answer)
	}
}

// appendTable adds the objects of a table.
func (e *mailboxesEndpoint) appendTable(to *mailboxObjects, table *metav1.Table) error {
	if len(table.ColumnDefinitions) > 0 {
		e.columns = table.ColumnDefinitions
	}
	for _, row := range table.Rows {
		content := &unstructured.Unstructured{}
		if err := content.UnmarshalJSON(row.Object.Raw); err != nil {
			return fmt.Errorf("cannot read an object of the server's table: %w", err)
		}
		to.objects = append(to.objects, mailboxObject{content: content, row: row.Cells, columns: e.columns})
	}
	return nil
}

// endpointEvent is an event of an endpoint's watch. ended means that the watch has ended.
type endpointEvent struct {
	watch.Event
	endpoint *mailboxesEndpoint
	ended    bool
}

// forward sends the events of a watch, and its end.
func (e *mailboxesEndpoint) forward(ctx context.Context, from watch.Interface, to chan<- endpointEvent) {
	send := func(event endpointEvent) bool {
		select {
		case to <- event:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for event := range from.ResultChan() {
		if !send(endpointEvent{Event: event, endpoint: e}) {
			return
		}
	}
	send(endpointEvent{endpoint: e, ended: true})
}
