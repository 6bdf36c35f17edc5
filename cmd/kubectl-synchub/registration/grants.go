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

package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
)

// AllNamespaces requests permissions in the whole cluster, after a registration that restricted them to namespaces.
const AllNamespaces = "*"

// Grants are the permissions of an identity on a target.
type Grants struct {
	// Resources are the resources in the annotation of the ClusterRole that the rules of the roles really allow.
	Resources []rbac.Resource
	// Namespaces are the namespaces to which the permissions are restricted. None means the whole cluster.
	Namespaces []string
	// Tenancy is what the hub may keep for workload workspaces.
	Tenancy rbac.Tenancy
	// clusterRules are the rules of the ClusterRole. namespaceRules are the rules of the Roles, by namespace.
	clusterRules   []rbacv1.PolicyRule
	namespaceRules map[string][]rbacv1.PolicyRule
}

// newGrants returns the permissions that the options allow for the resources.
func newGrants(resources []rbac.Resource, options rbac.Options) *Grants {
	granted := &Grants{
		Resources: resources, Namespaces: options.Namespaces, Tenancy: options.Tenancy,
		clusterRules: rbac.ClusterRoleRules(resources, options), namespaceRules: map[string][]rbacv1.PolicyRule{},
	}
	for _, namespace := range options.Namespaces {
		granted.namespaceRules[namespace] = rbac.RoleRules(resources, options)
	}
	granted.namespaceRules[edgev2alpha1.TenantsNamespace] = options.Tenancy.AccountRules()
	return granted
}

// grantAnnotations returns the annotations that record permissions.
func grantAnnotations(resources []rbac.Resource, options rbac.Options) map[string]string {
	return map[string]string{
		resourcesAnnotation: formatResources(rbac.MergeResources(resources)), namespacesAnnotation: strings.Join(options.Namespaces, ","),
		tenancyAnnotation: formatTenancy(options.Tenancy),
	}
}

// parseGrant returns the permissions that the annotations of an object record. Whether roles may escalate is not recorded.
func parseGrant(object client.Object) (resources []rbac.Resource, options rbac.Options, err error) {
	annotations := object.GetAnnotations()
	if text := annotations[namespacesAnnotation]; text != "" {
		options.Namespaces = strings.Split(text, ",")
	}
	options.Tenancy = parseTenancy(annotations[tenancyAnnotation])
	if text := annotations[resourcesAnnotation]; text != "" {
		if resources, err = rbac.ParseResources(strings.Split(text, ",")); err != nil {
			err = fmt.Errorf("the annotation %s of %s: %w", resourcesAnnotation, object.GetName(), err)
		}
	}
	return resources, options, err
}

// allows reports whether the rules allow a resource in the whole cluster, or in at least one of the namespaces. The other
// namespaces may have been deleted, with their Roles.
func (g *Grants) allows(resource rbac.Resource) bool {
	isGranted := func(namespaces ...string) bool {
		return len(g.missing([]rbac.Resource{resource}, rbac.Options{Namespaces: namespaces, Tenancy: g.Tenancy})) == 0
	}
	if len(g.Namespaces) == 0 {
		return isGranted()
	}
	return slices.ContainsFunc(g.Namespaces, func(namespace string) bool { return isGranted(namespace) })
}

// missing returns the permissions that the resources need and the rules do not allow.
func (g *Grants) missing(resources []rbac.Resource, options rbac.Options) []authorizationv1.ResourceAttributes {
	added := rbac.AddedAttributes(g.clusterRules, rbac.ClusterRoleRules(resources, options))
	addIn := func(namespace string, rules []rbacv1.PolicyRule) {
		for _, one := range rbac.AddedAttributes(slices.Concat(g.clusterRules, g.namespaceRules[namespace]), rules) {
			one.Namespace = namespace
			added = append(added, one)
		}
	}
	for _, namespace := range options.Namespaces {
		addIn(namespace, rbac.RoleRules(resources, options))
	}
	addIn(edgev2alpha1.TenantsNamespace, options.Tenancy.AccountRules())
	return append(added, options.Tenancy.AddedBinding(g.clusterRules)...)
}

// resolveTenancy returns what the hub keeps for workload workspaces: as requested, or as in the previous registration. It returns an
// error if the target does not have their ClusterRole.
func (r *Registrar) resolveTenancy(ctx context.Context, before *Grants) (rbac.Tenancy, error) {
	var desired rbac.Tenancy
	switch {
	case r.Tenancy != nil:
		desired = r.Tenancy.grants()
	case before != nil:
		desired = before.Tenancy
	}
	if desired.Role == "" || r.TargetClient == nil {
		return desired, nil
	}
	err := r.TargetClient.Get(ctx, types.NamespacedName{Name: desired.Role}, &rbacv1.ClusterRole{})
	if apierrors.IsNotFound(err) {
		return desired, fmt.Errorf("--tenant-role: the target has no ClusterRole %q", desired.Role)
	}
	return desired, describeTargetError(err)
}

// resolveNamespaces returns the namespaces for the permissions: the requested ones, or the ones of the previous
// registration. It returns an error if one of them does not exist on the target.
func (r *Registrar) resolveNamespaces(ctx context.Context, before *Grants) ([]string, error) {
	desired := r.Namespaces
	switch {
	case slices.Equal(desired, []string{AllNamespaces}):
		return nil, nil
	case len(desired) == 0 && before != nil:
		desired = before.Namespaces
	}
	desired = slices.Compact(slices.Sorted(slices.Values(desired)))
	for _, name := range desired {
		err := r.TargetClient.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("--namespaces: the target has no namespace %q: have its administrator create it first, since the hub cannot, or leave it out", name)
		}
		if err != nil {
			return nil, describeTargetError(err)
		}
	}
	return desired, nil
}

// filterNamespaced returns the namespaced resources, or all resources if namespaces is empty. If it would leave out a
// resource that the operator requested by name, it returns an error.
func (r *Registrar) filterNamespaced(namespaces []string, resources []rbac.Resource) ([]rbac.Resource, error) {
	if len(namespaces) == 0 {
		return resources, nil
	}
	var kept []rbac.Resource
	var skipped []string
	for _, resource := range resources {
		name := resource.GroupResource().String()
		isNamespaced, err := r.isNamespaced(resource)
		switch isRequested := containsResource(resource, r.Requested.Resources) || containsResource(resource, r.Requested.Additional); {
		case err != nil && isRequested && meta.IsNoMatchError(err):
			return nil, fmt.Errorf("%s: the target does not serve it, and with --namespaces the hub cannot install its definition: install it first", name)
		case err != nil && !meta.IsNoMatchError(err):
			return nil, fmt.Errorf("cannot find out whether objects of %s are in namespaces: %w", name, err)
		case err == nil && isNamespaced:
			resource.InstallsCRD = false
			kept = append(kept, resource)
		case isRequested:
			return nil, fmt.Errorf("%s: its objects are in no namespace, and --namespaces gives rights in namespaces only: leave one of them out", name)
		default:
			skipped = append(skipped, name)
		}
	}
	if len(skipped) > 0 {
		r.info(fmt.Sprintf("No rights for %s: they are in no namespace, or not served.", strings.Join(skipped, ",")))
	}
	return kept, nil
}

// isNamespaced reports whether objects of a resource are in namespaces. Without access to the target it knows the
// cluster-scoped resources of Kubernetes only.
func (r *Registrar) isNamespaced(resource rbac.Resource) (bool, error) {
	if r.TargetClient == nil {
		return !slices.Contains(clusterScopedResources[resource.Group], resource.Resource), nil
	}
	kind, err := r.TargetClient.RESTMapper().KindFor(resource.GroupResource().WithVersion(""))
	if err != nil {
		return false, err
	}
	mapping, err := r.TargetClient.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// clusterScopedResources are the cluster-scoped resources of Kubernetes, by group.
var clusterScopedResources = map[string][]string{
	"":                             {"componentstatuses", "namespaces", "nodes", "persistentvolumes"},
	"admissionregistration.k8s.io": {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"},
	"apiextensions.k8s.io":         {"customresourcedefinitions"},
	"apiregistration.k8s.io":       {"apiservices"},
	"certificates.k8s.io":          {"certificatesigningrequests", "clustertrustbundles"},
	"flowcontrol.apiserver.k8s.io": {"flowschemas", "prioritylevelconfigurations"},
	"networking.k8s.io":            {"ingressclasses", "ipaddresses", "servicecidrs"},
	"node.k8s.io":                  {"runtimeclasses"},
	"rbac.authorization.k8s.io":    {"clusterrolebindings", "clusterroles"},
	"resource.k8s.io":              {"deviceclasses", "resourceslices"},
	"scheduling.k8s.io":            {"priorityclasses"},
	"storage.k8s.io":               {"csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"},
}

func containsResource(resource rbac.Resource, requested []rbac.Resource) bool {
	return slices.ContainsFunc(requested, func(one rbac.Resource) bool {
		return one.Resource == resource.Resource && (one.Group == resource.Group || one.Group == "")
	})
}
