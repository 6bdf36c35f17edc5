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

	"github.com/synchub-dev/synchub/provider/rbac"
)

// AllNamespaces asks for rights in the whole cluster again.
const AllNamespaces = "*"

// Grants are what an identity was given on a target.
type Grants struct {
	// Resources are those that rights were granted for. Only those count that the rules of its roles allow: an annotation
	// alone gives no rights.
	Resources []rbac.Resource
	// Namespaces are the only ones in which they were granted; none stands for the whole cluster.
	Namespaces []string
	// clusterRules are the rules of the ClusterRole, in those of the Roles, by namespace.
	clusterRules   []rbacv1.PolicyRule
	namespaceRules map[string][]rbacv1.PolicyRule
}

// allows reports whether rights were granted for a resource. One namespace is enough: another may have gone, with the rights there.
func (g *Grants) allows(resource rbac.Resource) bool {
	isGranted := func(namespaces ...string) bool {
		return len(g.missing([]rbac.Resource{resource}, rbac.Options{Namespaces: namespaces})) == 0
	}
	if len(g.Namespaces) == 0 {
		return isGranted()
	}
	return slices.ContainsFunc(g.Namespaces, func(namespace string) bool { return isGranted(namespace) })
}

// missing returns what was not granted of what the resources need.
func (g *Grants) missing(resources []rbac.Resource, options rbac.Options) []authorizationv1.ResourceAttributes {
	added := rbac.AddedAttributes(g.clusterRules, rbac.ClusterRoleRules(resources, options))
	for _, namespace := range options.Namespaces {
		for _, one := range rbac.AddedAttributes(slices.Concat(g.clusterRules, g.namespaceRules[namespace]), rbac.RoleRules(resources, options)) {
			one.Namespace = namespace
			added = append(added, one)
		}
	}
	return added
}

// resolveNamespaces returns the namespaces that the rights are to be bound to: those asked for, or else those of before.
func (p *Registrar) resolveNamespaces(ctx context.Context, before *Grants) ([]string, error) {
	wanted := p.Namespaces
	switch {
	case slices.Equal(wanted, []string{AllNamespaces}):
		return nil, nil
	case len(wanted) == 0 && before != nil:
		wanted = before.Namespaces
	}
	wanted = slices.Compact(slices.Sorted(slices.Values(wanted)))
	for _, name := range wanted {
		err := p.TargetClient.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("--namespaces: the target has no namespace %q: have its administrator create it first, since the hub cannot, or leave it away", name)
		}
		if err != nil {
			return nil, describeTargetError(err)
		}
	}
	return wanted, nil
}

// filterNamespaced returns the resources that rights in namespaces can be given for. Of those that were asked for by name none is left
// out silently.
func (p *Registrar) filterNamespaced(namespaces []string, resources []rbac.Resource) ([]rbac.Resource, error) {
	if len(namespaces) == 0 {
		return resources, nil
	}
	var kept []rbac.Resource
	var others []string
	for _, resource := range resources {
		name := resource.GroupResource().String()
		isNamespaced, err := p.isNamespaced(resource)
		switch isAsked := containsResource(resource, p.Requested.Resources) || containsResource(resource, p.Requested.Additional); {
		case err != nil && isAsked && meta.IsNoMatchError(err):
			return nil, fmt.Errorf("%s: the target does not serve it, and with --namespaces the hub cannot install its definition: install it first", name)
		case err != nil && !meta.IsNoMatchError(err):
			return nil, fmt.Errorf("cannot find out whether objects of %s are in namespaces: %w", name, err)
		case err == nil && isNamespaced:
			resource.InstallsCRD = false
			kept = append(kept, resource)
		case isAsked:
			return nil, fmt.Errorf("%s: its objects are in no namespace, and --namespaces gives rights in namespaces only: leave one of them away", name)
		default:
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		p.info(fmt.Sprintf("No rights for %s: they are in no namespace, or not served.", strings.Join(others, ",")))
	}
	return kept, nil
}

func (p *Registrar) isNamespaced(resource rbac.Resource) (bool, error) {
	kind, err := p.TargetClient.RESTMapper().KindFor(resource.GroupResource().WithVersion(""))
	if err != nil {
		return false, err
	}
	mapping, err := p.TargetClient.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func containsResource(resource rbac.Resource, asked []rbac.Resource) bool {
	return slices.ContainsFunc(asked, func(one rbac.Resource) bool {
		return one.Resource == resource.Resource && (one.Group == resource.Group || one.Group == "")
	})
}
