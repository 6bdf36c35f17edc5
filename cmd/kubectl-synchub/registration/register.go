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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
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
	Namespaces  []string
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
	if r.Admin == nil {
		if _, err := kubeconfig.Parse(r.Kubeconfig); err != nil {
			return nil, err
		}
	}
	desired, err := r.desiredSyncTarget(ctx)
	if err != nil {
		return nil, err
	}
	target, grant, err := r.resolveAndConfirm(ctx, desired)
	if err != nil {
		return nil, err
	}
	syncTarget, err := r.Inventory.EnsureSyncTarget(ctx, desired)
	if err != nil {
		return nil, err
	}
	if target == nil {
		return syncTarget, r.Inventory.EnsureSecret(ctx, syncTarget, r.Kubeconfig)
	}
	if err := target.Ensure(ctx, grant.resources, grant.Options); err != nil {
		return nil, err
	}
	return syncTarget, r.renewCredentials(ctx, target, syncTarget, true)
}

// Preflight returns the error that Register would return, as far as access reviews and reads can predict it.
func (r *Registrar) Preflight(ctx context.Context) error {
	inventory := *r.Inventory
	inventory.Client, inventory.DryRun, inventory.Report = newAccessReviewClient(inventory.Client), true, nil
	preflight := *r
	preflight.Inventory, preflight.Info, preflight.Confirm = &inventory, nil, nil
	if r.TargetClient != nil {
		preflight.TargetClient = newAccessReviewClient(r.TargetClient)
	}
	_, err := preflight.Register(ctx)
	return err
}

// desiredSyncTarget returns the desired SyncTarget, with the settings of an existing one that the registration does not
// change.
func (r *Registrar) desiredSyncTarget(ctx context.Context) (*edgev2alpha1.SyncTarget, error) {
	current, err := r.Inventory.SyncTarget(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	desired := r.Inventory.DesiredSyncTarget(r.Name, r.Labels)
	desired.Spec.Connection = r.Connection
	if r.Connection == edgev2alpha1.ConnectionTunnel {
		desired.Spec.KubeconfigSecretRef.Name, desired.Spec.KubeconfigSecretRef.Key = r.Name+tunnelSuffix, tunnelField
	}
	if current != nil {
		if current.DeletionTimestamp != nil {
			return nil, fmt.Errorf("the SyncTarget %s is being deleted: wait until it is gone, or remove it with `kubectl synchub unregister %s --force`", r.Name, r.Name)
		}
		desired.UID, desired.Spec.MailboxAccess, desired.Spec.Adoption = current.UID, current.Spec.MailboxAccess, current.Spec.Adoption
		desired.Spec.AllowSharedCluster = current.Spec.AllowSharedCluster
		desired.Spec.Namespaces = current.Spec.Namespaces.DeepCopy()
		if current.Spec.KubeconfigSecretRef != nil && IsTunnel(current) == IsTunnel(desired) {
			desired.Spec.KubeconfigSecretRef = current.Spec.KubeconfigSecretRef
		}
	}
	if r.Adoption != nil {
		desired.Spec.Adoption = *r.Adoption
	}
	return desired, r.setNamespaces(desired)
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
		return fmt.Errorf("--namespaces: %d are given, and at most %d can be, since the hub watches each resource in each of them: give fewer, or rights in the whole cluster with '%s'", many, maxNamespaces, AllNamespaces)
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

// resolveAndConfirm returns the target and the permissions for it, and calls Confirm if the registration gives more
// access than before. It writes nothing. Without an administrator's access, the target is nil.
func (r *Registrar) resolveAndConfirm(ctx context.Context, desired *edgev2alpha1.SyncTarget) (target *Target, grant grant, err error) {
	existing := desired.DeepCopy()
	if r.Adoption != nil {
		// The operator has requested this adoption policy, so it needs no confirmation.
		existing.Spec.Adoption = ""
	}
	questions, err := r.Inventory.checkExistingSecret(ctx, existing)
	if err != nil {
		return nil, grant, err
	}
	if r.Admin != nil {
		if target, err = r.Target(ctx); err != nil {
			return nil, grant, err
		}
		var added string
		if grant, added, err = r.resolveGrant(ctx, target); err != nil {
			return nil, grant, err
		}
		r.restrictAsBefore(desired, grant.Namespaces)
		if added != "" {
			questions = append(questions, "The hub's rights on the target would grow by: "+added+".")
		}
	}
	if len(questions) > 0 && r.Confirm != nil {
		err = r.Confirm(ctx, strings.Join(questions, "\n"))
	}
	return target, grant, err
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

// Objects returns the objects that Register would write, without the data of the Secret. It writes nothing.
func (r *Registrar) Objects(ctx context.Context) ([]client.Object, error) {
	desired, err := r.desiredSyncTarget(ctx)
	if err != nil {
		return nil, err
	}
	target, grant, err := r.resolveAndConfirm(ctx, desired)
	if err != nil {
		return nil, err
	}
	secret, _ := NewSecret(desired)
	desired.UID = ""
	objects := []client.Object{desired}
	if target != nil {
		objects = append(objects, target.Objects(grant.resources, grant.Options)...)
	}
	return append(objects, secret), nil
}

// RotateToken writes a new token to the Secret. With revoke, it invalidates all existing tokens first, so the hub has
// none for a moment.
func (r *Registrar) RotateToken(ctx context.Context, revoke bool) error {
	syncTarget, err := r.Inventory.SyncTarget(ctx, r.Name)
	if err != nil {
		return err
	}
	if syncTarget == nil {
		return NotFound(r.Name)
	}
	if _, err := r.Inventory.checkExistingSecret(ctx, syncTarget); err != nil {
		return err
	}
	target, err := r.Target(ctx)
	if err != nil {
		return err
	}
	if revoke {
		if err := target.RevokeTokens(ctx); err != nil {
			return err
		}
	}
	return r.renewCredentials(ctx, target, syncTarget, false)
}

// renewCredentials writes a kubeconfig to the Secret. With keep, it keeps a token that has more than half of its lifetime
// left.
func (r *Registrar) renewCredentials(ctx context.Context, target *Target, syncTarget *edgev2alpha1.SyncTarget, keep bool) error {
	var current []byte
	if keep {
		var err error
		if current, err = r.Inventory.Kubeconfig(ctx, syncTarget); err != nil {
			return err
		}
	}
	if target.DryRun {
		// A dry run cannot request a token.
		return r.Inventory.EnsureSecret(ctx, syncTarget, current)
	}
	kubeconfig, err := target.Kubeconfig(ctx, r.Admin, current, r.Lifetime, r.Clock.Now())
	if err != nil {
		return err
	}
	return r.Inventory.EnsureSecret(ctx, syncTarget, kubeconfig)
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

// resolveGrant returns the permissions to grant. added describes the permissions that the hub does not have yet, or is empty.
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
	var granted []rbac.Resource
	if before != nil {
		granted = before.Resources
	}
	resources, source, err := SelectResources(request, granted)
	if err != nil {
		return grant{}, "", err
	}
	chosen.Options = r.RBACOptions
	if chosen.Namespaces, err = r.resolveNamespaces(ctx, before); err != nil {
		return grant{}, "", err
	}
	if chosen.resources, err = r.filterNamespaced(chosen.Namespaces, resources); err != nil {
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
	r.info(fmt.Sprintf("Rights in %s for %d resources, %s: %s.", where, len(chosen.resources), source, formatResources(chosen.resources)))
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
	for _, resource := range resources {
		if resource.Group == "rbac.authorization.k8s.io" && resource.Down {
			return true
		}
	}
	return false
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
func NotFound(name string) error {
	return fmt.Errorf("there is no SyncTarget %q in the workspace of the current context: see `kubectl get synctargets`", name)
}
