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
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/wording"
)

// Registrar registers one cluster. Its fields describe the desired registration.
type Registrar struct {
	// Name is the name of the SyncTarget. Labels are added to its labels.
	Name   string
	Labels map[string]string
	// Connection selects which side dials. Empty means that the hub dials.
	Connection edgev2alpha1.ConnectionType
	// Adoption is the adoption policy of the SyncTarget. Nil keeps the policy of an existing one.
	Adoption  *edgev2alpha1.AdoptionPolicy
	Requested ResourceRequest
	// Namespaces are the namespaces of the target to which the hub is restricted. None keeps the present restriction, and
	// [AllNamespaces] removes it.
	Namespaces []string
	// Tenancy is how workload workspaces share the cluster. Nil keeps the present tenancy.
	Tenancy     *Tenancy
	RBACOptions rbac.Options
	// Lifetime is the requested lifetime of a token.
	Lifetime time.Duration

	Inventory *Inventory
	// Admin and TargetClient have the administrator's access to the target. Without them, the hub gets Kubeconfig.
	Admin        *AdminConfig
	TargetClient client.Client
	Kubeconfig   []byte

	// Info is called with texts for the operator. It may be nil.
	Info func(string)
	// Confirm is called before the hub, or another user, gets more access than before. If it returns an error, the
	// registration fails. It may be nil.
	Confirm func(ctx context.Context, question string) error
	// IsProtected reports whether a namespace is protected and not in the allowed ones of the SyncTarget. It may be nil.
	IsProtected func(namespace string, allowed []string) bool
	Clock       clock.PassiveClock
}

// Register creates or updates the SyncTarget, then the identity on the target, then the Secret. After an error, it can be
// called again.
func (r *Registrar) Register(ctx context.Context) (*edgev2alpha1.SyncTarget, error) {
	current, desired, err := r.desiredSyncTarget(ctx)
	if err != nil {
		return nil, err
	}
	if r.Admin == nil {
		config, err := kubeconfig.Parse(r.Kubeconfig)
		if err != nil {
			return nil, err
		}
		if isWorkspaceURL(config.Host) {
			return nil, notACluster(config.Host)
		}
		if err := r.ensureConfirmed(ctx, current, desired, ""); err != nil {
			return nil, err
		}
		return desired, r.Inventory.EnsureSecret(ctx, desired, r.Kubeconfig, nil)
	}
	if err := r.Admin.checkNotKCP(); err != nil {
		return nil, err
	}
	target, err := r.Target(ctx)
	if err != nil {
		return nil, err
	}
	grant, added, err := r.resolveGrant(ctx, target)
	if err != nil {
		return nil, err
	}
	r.restrictAsBefore(desired, grant.Namespaces)
	if err := r.ensureConfirmed(ctx, current, desired, added); err != nil {
		return nil, err
	}
	if err := target.Ensure(ctx, grant.resources, grant.Options); err != nil {
		return nil, err
	}
	credential, err := r.Inventory.Kubeconfig(ctx, desired)
	if err != nil {
		return nil, err
	}
	_, err = r.renewCredentials(ctx, target, desired, credential)
	return desired, err
}

// desiredSyncTarget returns the current SyncTarget, which is nil if there is none, and the desired one. The desired one has
// all settings of the current one that the registration does not change.
func (r *Registrar) desiredSyncTarget(ctx context.Context) (current, desired *edgev2alpha1.SyncTarget, err error) {
	if current, err = r.Inventory.SyncTarget(ctx, r.Name); err != nil {
		return nil, nil, err
	}
	desired = current.DeepCopy()
	switch {
	case current == nil:
		desired = &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	case current.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("the SyncTarget %s is being deleted: wait until it is gone, or remove it with `kubectl synchub unregister %s --force`", r.Name, r.Name)
	}
	for name, value := range r.Labels {
		metav1.SetMetaDataLabel(&desired.ObjectMeta, name, value)
	}
	desired.Spec.Connection = r.Connection
	if desired.Spec.KubeconfigSecretRef == nil || IsTunnel(current) != IsTunnel(desired) {
		secret := &edgev2alpha1.SecretReference{Namespace: r.Inventory.Namespace, Name: r.Name + kubeconfigSuffix, Key: edgev2alpha1.DefaultCredentialKey}
		if IsTunnel(desired) {
			secret.Name, secret.Key = r.Name+tunnelSuffix, tunnelField
		}
		desired.Spec.KubeconfigSecretRef = secret
	}
	if r.Adoption != nil {
		desired.Spec.Adoption = *r.Adoption
	}
	if r.Tenancy != nil {
		r.Tenancy.setOn(desired)
	}
	return current, desired, r.setNamespaces(desired)
}

// maxNamespaces is the maximum number of namespaces in spec.namespaces.only, as in the schema.
const maxNamespaces = 64

// setNamespaces sets spec.namespaces.only of the SyncTarget.
func (r *Registrar) setNamespaces(desired *edgev2alpha1.SyncTarget) error {
	if len(r.Namespaces) == 0 {
		return nil
	}
	restrictions := desired.Spec.Namespaces
	if restrictions == nil {
		restrictions = &edgev2alpha1.TargetNamespaces{}
	}
	restrictions.Only = nil
	if r.Namespaces[0] != AllNamespaces {
		restrictions.Only = slices.Compact(slices.Sorted(slices.Values(r.Namespaces)))
	}
	if many := len(restrictions.Only); many > maxNamespaces {
		return fmt.Errorf("--namespaces has %d namespaces, and may have at most %d, since the hub watches each resource in each of them: give fewer, or rights in the whole cluster with '%s'", many, maxNamespaces, AllNamespaces)
	}
	for _, namespace := range restrictions.Only {
		if r.IsProtected != nil && r.IsProtected(namespace, restrictions.AllowProtected) {
			return fmt.Errorf("--namespaces: %s is protected, the hub uses it only if spec.namespaces.allowProtected of the SyncTarget %s lists it: add it there first, or leave it out", namespace, r.Name)
		}
	}
	desired.Spec.Namespaces = restrictions
	if len(restrictions.Only)+len(restrictions.AllowProtected) == 0 {
		desired.Spec.Namespaces = nil
	}
	return nil
}

// ensureConfirmed creates or updates the SyncTarget. It first calls Confirm if the registration gives more access than before.
// added describes the permissions that it adds, or is empty. The error may also be that the Secret is not for the SyncTarget.
func (r *Registrar) ensureConfirmed(ctx context.Context, current, desired *edgev2alpha1.SyncTarget, added string) error {
	existing := desired.DeepCopy()
	if r.Adoption != nil {
		// The operator has requested this adoption policy, so it needs no confirmation.
		existing.Spec.Adoption = ""
	}
	questions, err := r.Inventory.checkExistingSecret(ctx, existing)
	if err != nil {
		return err
	}
	if added != "" {
		questions = append(questions, "The hub's rights on the target would grow by: "+added+".")
	}
	if len(questions) > 0 && r.Confirm != nil {
		if err := r.Confirm(ctx, strings.Join(questions, "\n")); err != nil {
			return err
		}
	}
	return r.Inventory.EnsureSyncTarget(ctx, current, desired)
}

// restrictAsBefore restricts a SyncTarget to the namespaces of its permissions, unless the SyncTarget or the operator names
// other namespaces. The SyncTarget may be new, and the permissions may come from a deleted one of the same name.
func (r *Registrar) restrictAsBefore(desired *edgev2alpha1.SyncTarget, namespaces []string) {
	restrictions := desired.Spec.Namespaces
	if len(r.Namespaces) > 0 || len(namespaces) == 0 || restrictions != nil && len(restrictions.Only) > 0 {
		return
	}
	if restrictions == nil {
		desired.Spec.Namespaces = &edgev2alpha1.TargetNamespaces{}
	}
	desired.Spec.Namespaces.Only = namespaces
}

// grant describes the permissions on a target.
type grant struct {
	resources []rbac.Resource
	rbac.Options
}

// RotateToken writes a new token to the Secret of a SyncTarget, and returns its hash. With revoke, it invalidates all existing
// tokens first, so the hub has none for a moment. A dry run creates no token, and returns no hash.
func (r *Registrar) RotateToken(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, revoke bool) (hash string, err error) {
	if _, err := r.Inventory.checkExistingSecret(ctx, syncTarget); err != nil {
		return "", err
	}
	target, err := r.Target(ctx)
	if err != nil {
		return "", err
	}
	if revoke {
		if err := target.RevokeTokens(ctx); err != nil {
			return "", err
		}
	}
	written, err := r.renewCredentials(ctx, target, syncTarget, nil)
	if err != nil || written == nil {
		return "", err
	}
	return tokenHash(written)
}

// tokenHash returns the hash of the token in a kubeconfig, as the hub reports it.
func tokenHash(content []byte) (string, error) {
	config, err := kubeconfig.Parse(content)
	if err != nil {
		return "", err
	}
	token, ok := kubeconfig.ParseToken(config.BearerToken)
	if !ok {
		return "", errors.New("the target issued a token that is none of a ServiceAccount, or does not expire")
	}
	return token.Hash, nil
}

// renewCredentials writes a kubeconfig to the Secret: the current one, if more than half of the lifetime of its token is
// left, or one with a new token. It returns what it wrote. A dry run cannot request a token.
func (r *Registrar) renewCredentials(ctx context.Context, target *Target, syncTarget *edgev2alpha1.SyncTarget, current []byte) (written []byte, err error) {
	if !target.DryRun {
		if current, err = target.Kubeconfig(ctx, r.Admin, current, r.Lifetime, r.Clock.Now()); err != nil {
			return nil, err
		}
	}
	return current, r.Inventory.EnsureSecret(ctx, syncTarget, current, nil)
}

// Target returns the identity on the target, with the client for it.
func (r *Registrar) Target(ctx context.Context) (*Target, error) {
	inventory, err := InventoryID(ctx, r.Inventory.Client)
	if err != nil {
		return nil, err
	}
	return &Target{
		Identity: Identity{SyncTarget: r.Name, Inventory: inventory},
		Client:   r.TargetClient, DryRun: r.Inventory.DryRun, Report: r.Inventory.Report,
	}, nil
}

// resolveGrant returns the permissions to grant on the target, as selectGrant does.
func (r *Registrar) resolveGrant(ctx context.Context, target *Target) (chosen grant, added string, err error) {
	before, err := target.CurrentGrants(ctx)
	if err != nil {
		return grant{}, "", describeTargetError(err)
	}
	request := r.Requested
	if request.Resources, err = r.resolveResources(request.Resources); err != nil {
		return grant{}, "", err
	}
	if request.Additional, err = r.resolveResources(request.Additional); err != nil {
		return grant{}, "", err
	}
	namespaces, err := r.resolveNamespaces(ctx, before)
	if err != nil {
		return grant{}, "", err
	}
	tenancy, err := r.resolveTenancy(ctx, before)
	if err != nil {
		return grant{}, "", err
	}
	return r.selectGrant(request, before, namespaces, tenancy)
}

// selectGrant returns the permissions for the requested resources in the namespaces, and for the tenancy. before are the present permissions, or
// nil. added describes the permissions that the hub does not have yet, or is empty.
func (r *Registrar) selectGrant(request ResourceRequest, before *Grants, namespaces []string, tenancy rbac.Tenancy) (chosen grant, added string, err error) {
	var granted []rbac.Resource
	if before != nil {
		granted = before.Resources
	}
	resources, source, err := SelectResources(request, granted)
	if err != nil {
		return grant{}, "", err
	}
	chosen.Options = r.RBACOptions
	chosen.Namespaces, chosen.Tenancy = namespaces, tenancy
	if chosen.resources, err = r.filterNamespaced(namespaces, resources); err != nil {
		return grant{}, "", err
	}
	r.describeGrant(chosen, source)
	if before != nil {
		more := before.missing(chosen.resources, chosen.Options)
		added = rbac.DescribeAttributes(more, len(more))
	}
	return chosen, added, nil
}

// describeGrant informs the operator about the permissions and the source of their resources.
func (r *Registrar) describeGrant(chosen grant, source string) {
	where := "the whole cluster"
	if len(chosen.Namespaces) > 0 {
		where = rbac.FormatNamespaces(chosen.Namespaces)
	}
	count := wording.Count(len(chosen.resources), "resource", "resources")
	if role := chosen.Tenancy.Role; role != "" {
		r.info(fmt.Sprintf("Rights to read %s in %s, %s: %s. Workspaces get the ClusterRole %s in their own namespaces.", count, where, source, formatResources(chosen.resources), role))
		return
	}
	r.info(fmt.Sprintf("Rights in %s for %s, %s: %s.", where, count, source, formatResources(chosen.resources)))
	if !chosen.Escalate && includesRBAC(chosen.resources) {
		r.info("Roles that grant more than these rights, and bindings to them, will be refused by the target. Allow them with --allow-rbac-escalation.")
	}
}

// formatResources returns the resources in the format of the flag --resources.
func formatResources(resources []rbac.Resource) string {
	names := make([]string, 0, len(resources))
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return strings.Join(names, ",")
}

func (r *Registrar) info(text string) {
	if r.Info != nil {
		r.Info(text)
	}
}

func includesRBAC(resources []rbac.Resource) bool {
	return slices.ContainsFunc(resources, func(resource rbac.Resource) bool { return resource.Group == rbacv1.GroupName && resource.Down })
}

// resolveResources returns the resources with the group and the plural name that the target serves. A resource that the
// target does not serve gets InstallsCRD.
func (r *Registrar) resolveResources(requested []rbac.Resource) ([]rbac.Resource, error) {
	var resolved []rbac.Resource
	for _, resource := range requested {
		found, err := r.TargetClient.RESTMapper().ResourceFor(resource.GroupResource().WithVersion(""))
		switch {
		case err == nil:
			resource.Group, resource.Resource = found.Group, found.Resource
		case meta.IsNoMatchError(err) && resource.Group == "":
			return nil, fmt.Errorf("the target has no resource %q without a group: write it with its group, for example deployments.apps", resource.Resource)
		case meta.IsNoMatchError(err):
			resource.InstallsCRD = true
			r.info(fmt.Sprintf("The target does not serve %s: the hub is allowed to install its definition.", resource.GroupResource()))
		default:
			return nil, fmt.Errorf("cannot find out whether the target serves %s: %w", resource, err)
		}
		resolved = append(resolved, resource)
	}
	return resolved, nil
}

// NotFound returns the error for a SyncTarget that does not exist.
func (i *Inventory) NotFound(ctx context.Context, name string) error {
	return fmt.Errorf("there is no SyncTarget %q in the workspace of the current context%s: see `kubectl get synctargets`",
		name, suggest.Objects(ctx, i.Client, &edgev2alpha1.SyncTargetList{}, name))
}
