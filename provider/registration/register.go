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

// Registrar is what a registration is to bring about.
type Registrar struct {
	// Name and Labels are the SyncTarget's. Labels are added to those it has.
	Name   string
	Labels map[string]string
	// Adoption becomes the SyncTarget's; nil leaves it as it is.
	Adoption  *edgev2alpha1.AdoptionPolicy
	Requested ResourceRequest
	// Namespaces are the only ones of the target that the hub is to use, and to have rights in. None leaves that as it is, and
	// [AllNamespaces] stands for the whole cluster.
	Namespaces  []string
	RBACOptions rbac.Options
	// Lifetime is how long a token is to last.
	Lifetime time.Duration

	Inventory *Inventory
	// Admin and TargetClient are the way to the target. Without them Handed is the kubeconfig that the hub gets.
	Admin        *AdminConfig
	TargetClient client.Client
	Kubeconfig   []byte

	// Info is told what the operator should know. It may be nil.
	Info func(string)
	// Confirm is asked before more is given than was before; what it returns ends the registration. It may be nil.
	Confirm func(ctx context.Context, question string) error
	// IsProtected reports whether a namespace is protected and not among those that a SyncTarget allows all the same. It may be nil.
	IsProtected func(namespace string, allowed []string) bool
	Clock       clock.PassiveClock
}

// Register makes sure of the SyncTarget, then of the identity on the target, then of the Secret. What failed can be done
// again.
func (p *Registrar) Register(ctx context.Context) (*edgev2alpha1.SyncTarget, error) {
	if p.Admin == nil {
		if _, err := kubeconfig.Parse(p.Kubeconfig); err != nil {
			return nil, err
		}
	}
	wanted, err := p.desiredSyncTarget(ctx)
	if err != nil {
		return nil, err
	}
	target, grant, err := p.resolveAndConfirm(ctx, wanted)
	if err != nil {
		return nil, err
	}
	syncTarget, err := p.Inventory.EnsureSyncTarget(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if target == nil {
		return syncTarget, p.Inventory.EnsureSecret(ctx, syncTarget, p.Kubeconfig)
	}
	if err := target.Ensure(ctx, grant.resources, grant.Options); err != nil {
		return nil, err
	}
	return syncTarget, p.renewCredentials(ctx, target, syncTarget, true)
}

// Preflight returns why Register would fail, as far as that can be found out without a write.
func (p *Registrar) Preflight(ctx context.Context) error {
	inventory := *p.Inventory
	inventory.Client, inventory.DryRun, inventory.Report = newAccessReviewClient(inventory.Client), true, nil
	preflight := *p
	preflight.Inventory, preflight.Info, preflight.Confirm = &inventory, nil, nil
	if p.TargetClient != nil {
		preflight.TargetClient = newAccessReviewClient(p.TargetClient)
	}
	_, err := preflight.Register(ctx)
	return err
}

// desiredSyncTarget returns the SyncTarget as it is to be, after a look at the one that there is.
func (p *Registrar) desiredSyncTarget(ctx context.Context) (*edgev2alpha1.SyncTarget, error) {
	current, err := p.Inventory.SyncTarget(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	wanted := p.Inventory.DesiredSyncTarget(p.Name, p.Labels)
	if current != nil {
		if current.DeletionTimestamp != nil {
			return nil, fmt.Errorf("the SyncTarget %s is being deleted: wait until it is gone, or let it go with `kubectl synchub unregister %s --force`", p.Name, p.Name)
		}
		wanted.UID, wanted.Spec.MailboxAccess, wanted.Spec.Adoption = current.UID, current.Spec.MailboxAccess, current.Spec.Adoption
		wanted.Spec.AllowSharedCluster = current.Spec.AllowSharedCluster
		wanted.Spec.Namespaces = current.Spec.Namespaces.DeepCopy()
		if current.Spec.KubeconfigSecretRef != nil {
			wanted.Spec.KubeconfigSecretRef = current.Spec.KubeconfigSecretRef
		}
	}
	if p.Adoption != nil {
		wanted.Spec.Adoption = *p.Adoption
	}
	return wanted, p.setNamespaces(wanted)
}

// maxNamespaces is how many namespaces a SyncTarget may list in spec.namespaces.only. The schema says so, too.
const maxNamespaces = 64

// setNamespaces has the SyncTarget say which namespaces the hub uses.
func (p *Registrar) setNamespaces(wanted *edgev2alpha1.SyncTarget) error {
	if len(p.Namespaces) == 0 {
		return nil
	}
	restrictions := wanted.Spec.Namespaces
	if restrictions == nil {
		restrictions = &edgev2alpha1.TargetNamespaces{}
	}
	restrictions.Only = nil
	if p.Namespaces[0] != AllNamespaces {
		restrictions.Only = slices.Compact(slices.Sorted(slices.Values(p.Namespaces)))
	}
	if many := len(restrictions.Only); many > maxNamespaces {
		return fmt.Errorf("--namespaces: %d are given, and at most %d can be, since the hub watches each resource in each of them: give fewer, or rights in the whole cluster with '%s'", many, maxNamespaces, AllNamespaces)
	}
	for _, namespace := range restrictions.Only {
		if p.IsProtected != nil && p.IsProtected(namespace, restrictions.AllowProtected) {
			return fmt.Errorf("--namespaces: %s is protected, the hub uses it only if spec.namespaces.allowProtected of the SyncTarget %s lists it: put it there first, or leave it away", namespace, p.Name)
		}
	}
	wanted.Spec.Namespaces = restrictions
	if len(restrictions.Only)+len(restrictions.AllowProtected) == 0 {
		wanted.Spec.Namespaces = nil
	}
	return nil
}

// resolveAndConfirm finds out what is to be made, and has it confirmed if that gives more than there was. Nothing is made yet. Without
// an administrator there is no target to make anything on.
func (p *Registrar) resolveAndConfirm(ctx context.Context, wanted *edgev2alpha1.SyncTarget) (target *Target, grant grant, err error) {
	existing := wanted.DeepCopy()
	if p.Adoption != nil {
		// What the operator asks for is not asked of him.
		existing.Spec.Adoption = ""
	}
	questions, err := p.Inventory.checkExistingSecret(ctx, existing)
	if err != nil {
		return nil, grant, err
	}
	if p.Admin != nil {
		if target, err = p.Target(ctx); err != nil {
			return nil, grant, err
		}
		var added string
		if grant, added, err = p.resolveGrant(ctx, target); err != nil {
			return nil, grant, err
		}
		if restrictions := wanted.Spec.Namespaces; len(p.Namespaces) == 0 && len(grant.Namespaces) > 0 && (restrictions == nil || len(restrictions.Only) == 0) {
			// It was made anew, and the rights were not.
			if restrictions == nil {
				wanted.Spec.Namespaces = &edgev2alpha1.TargetNamespaces{}
			}
			wanted.Spec.Namespaces.Only = grant.Namespaces
		}
		if added != "" {
			questions = append(questions, "The hub's rights on the target would grow by: "+added+".")
		}
	}
	if len(questions) > 0 && p.Confirm != nil {
		err = p.Confirm(ctx, strings.Join(questions, "\n"))
	}
	return target, grant, err
}

// grant is what is granted on a target, and where.
type grant struct {
	resources []rbac.Resource
	rbac.Options
}

// Objects returns what Register makes sure of, except what it learns on the way: the Secret has no content. It reads, and
// writes nothing.
func (p *Registrar) Objects(ctx context.Context) ([]client.Object, error) {
	wanted, err := p.desiredSyncTarget(ctx)
	if err != nil {
		return nil, err
	}
	target, grant, err := p.resolveAndConfirm(ctx, wanted)
	if err != nil {
		return nil, err
	}
	secret, _ := NewSecret(wanted)
	wanted.UID = ""
	objects := []client.Object{wanted}
	if target != nil {
		objects = append(objects, target.Objects(grant.resources, grant.Options)...)
	}
	return append(objects, secret), nil
}

// RotateToken gives the hub a new token, and with revoke ends all that there are before. In between the hub has none.
func (p *Registrar) RotateToken(ctx context.Context, revoke bool) error {
	syncTarget, err := p.Inventory.SyncTarget(ctx, p.Name)
	if err != nil {
		return err
	}
	if syncTarget == nil {
		return NotFound(p.Name)
	}
	if _, err := p.Inventory.checkExistingSecret(ctx, syncTarget); err != nil {
		return err
	}
	target, err := p.Target(ctx)
	if err != nil {
		return err
	}
	if revoke {
		if err := target.RevokeTokens(ctx); err != nil {
			return err
		}
	}
	return p.renewCredentials(ctx, target, syncTarget, false)
}

// renewCredentials writes the Secret; keep leaves a token that is good.
func (p *Registrar) renewCredentials(ctx context.Context, target *Target, syncTarget *edgev2alpha1.SyncTarget, keep bool) error {
	var has []byte
	if keep {
		var err error
		if has, err = p.Inventory.Kubeconfig(ctx, syncTarget); err != nil {
			return err
		}
	}
	if target.DryRun {
		// A token cannot be asked for by way of trial.
		return p.Inventory.EnsureSecret(ctx, syncTarget, has)
	}
	kubeconfig, err := target.Kubeconfig(ctx, p.Admin, has, p.Lifetime, p.Clock.Now())
	if err != nil {
		return err
	}
	return p.Inventory.EnsureSecret(ctx, syncTarget, kubeconfig)
}

// Target returns the target's side of the plan.
func (p *Registrar) Target(ctx context.Context) (*Target, error) {
	inventory, err := InventoryID(ctx, p.Inventory.Client)
	if err != nil {
		return nil, err
	}
	return &Target{
		Identity: Identity{SyncTarget: p.Name, Inventory: inventory},
		Client:   p.TargetClient, DryRun: p.Inventory.DryRun, Report: p.Inventory.Report,
	}, nil
}

// resolveGrant returns what to grant, and by what the rights grow that the hub has.
func (p *Registrar) resolveGrant(ctx context.Context, target *Target) (chosen grant, added string, err error) {
	before, err := target.CurrentGrants(ctx)
	if err != nil {
		return grant{}, "", describeTargetError(err)
	}
	request := p.Requested
	if request.Resources, err = p.resolveResources(request.Resources); err != nil {
		return grant{}, "", err
	}
	if request.Additional, err = p.resolveResources(request.Additional); err != nil {
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
	chosen.Options = p.RBACOptions
	if chosen.Namespaces, err = p.resolveNamespaces(ctx, before); err != nil {
		return grant{}, "", err
	}
	if chosen.resources, err = p.filterNamespaced(chosen.Namespaces, resources); err != nil {
		return grant{}, "", err
	}
	where := "the whole cluster"
	if len(chosen.Namespaces) > 0 {
		where = rbac.FormatNamespaces(chosen.Namespaces)
	}
	p.info(fmt.Sprintf("Rights in %s for %d resources, %s: %s.", where, len(chosen.resources), source, formatResources(chosen.resources)))
	if !p.RBACOptions.Escalate && includesRBAC(chosen.resources) {
		p.info("Roles that grant more than the hub has, and bindings to them, will be refused by the target. Allow them with --allow-rbac-escalation.")
	}
	if before != nil {
		more := before.missing(chosen.resources, chosen.Options)
		added = rbac.DescribeAttributes(more, len(more))
	}
	return chosen, added, nil
}

// formatResources lists resources as an operator writes them.
func formatResources(resources []rbac.Resource) string {
	names := make([]string, 0, len(resources))
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return strings.Join(names, ",")
}

func (p *Registrar) info(text string) {
	if p.Info != nil {
		p.Info(text)
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

// resolveResources completes resources that were asked for by what the target serves.
func (p *Registrar) resolveResources(asked []rbac.Resource) ([]rbac.Resource, error) {
	var resolved []rbac.Resource
	for _, resource := range asked {
		found, err := p.TargetClient.RESTMapper().ResourceFor(resource.GroupResource().WithVersion(""))
		switch {
		case err == nil:
			resource.Group, resource.Resource = found.Group, found.Resource
		case meta.IsNoMatchError(err) && resource.Group == "":
			return nil, fmt.Errorf("the target has no resource %q without a group: write it with its group, for example deployments.apps", resource.Resource)
		case meta.IsNoMatchError(err):
			resource.InstallsCRD = true
			p.info(fmt.Sprintf("The target does not serve %s: the hub is allowed to install its definition.", resource.GroupResource()))
		default:
			return nil, fmt.Errorf("cannot find out whether the target serves %s: %w", resource, err)
		}
		resolved = append(resolved, resource)
	}
	return resolved, nil
}

// NotFound says that a SyncTarget is not there.
func NotFound(name string) error {
	return fmt.Errorf("there is no SyncTarget %q in the workspace of the current context: see `kubectl get synctargets`", name)
}
