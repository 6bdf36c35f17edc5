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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rights"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Plan is what a registration is to bring about.
type Plan struct {
	// Name and Labels are the SyncTarget's. Labels are added to those it has.
	Name   string
	Labels map[string]string
	// Resources are those asked for; see [Choose].
	Resources []rights.Resource
	Rights    rights.Options
	// Lifetime is how long a token is to last.
	Lifetime time.Duration

	Inventory *Inventory
	// Admin and TargetClient are the way to the target. Without them Handed is the kubeconfig that the hub gets.
	Admin        *Admin
	TargetClient client.Client
	Handed       []byte

	// Note is told what the operator should know. It may be nil.
	Note  func(string)
	Clock clock.PassiveClock
}

// Register makes sure of the SyncTarget, then of the identity on the target, then of the Secret. What failed can be done
// again.
func (p *Plan) Register(ctx context.Context) (*edgev2alpha1.SyncTarget, error) {
	if p.Admin == nil {
		if _, err := targets.ParseKubeconfig(p.Handed); err != nil {
			return nil, err
		}
	}
	syncTarget, err := p.Inventory.Ensure(ctx, p.Name, p.Labels)
	if err != nil {
		return nil, err
	}
	if p.Admin == nil {
		return syncTarget, p.Inventory.SetCredentials(ctx, syncTarget, p.Handed)
	}
	target, err := p.Target(ctx)
	if err != nil {
		return nil, err
	}
	resources, err := p.choose(ctx, target, syncTarget)
	if err != nil {
		return nil, err
	}
	if err := target.Ensure(ctx, resources, p.Rights); err != nil {
		return nil, err
	}
	return syncTarget, p.renew(ctx, target, syncTarget, true)
}

// Objects returns what Register makes sure of, except what it learns on the way: the Secret has no content. It reads, and
// writes nothing.
func (p *Plan) Objects(ctx context.Context) ([]client.Object, error) {
	syncTarget, err := p.Inventory.SyncTarget(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	wanted := p.Inventory.Wanted(p.Name, p.Labels)
	if syncTarget != nil && syncTarget.Spec.KubeconfigSecretRef != nil {
		wanted.Spec.KubeconfigSecretRef = syncTarget.Spec.KubeconfigSecretRef
	}
	objects := []client.Object{wanted}
	if p.Admin != nil {
		target, err := p.Target(ctx)
		if err != nil {
			return nil, err
		}
		resources, err := p.choose(ctx, target, syncTarget)
		if err != nil {
			return nil, err
		}
		objects = append(objects, target.Objects(resources, p.Rights)...)
	}
	secret, _ := Secret(wanted)
	return append(objects, secret), nil
}

// Rotate gives the hub a new token, and with revoke ends all that there are before. In between the hub has none.
func (p *Plan) Rotate(ctx context.Context, revoke bool) error {
	syncTarget, err := p.Inventory.SyncTarget(ctx, p.Name)
	if err != nil {
		return err
	}
	if syncTarget == nil {
		return NotFound(p.Name)
	}
	target, err := p.Target(ctx)
	if err != nil {
		return err
	}
	if revoke {
		if err := target.Revoke(ctx); err != nil {
			return err
		}
	}
	return p.renew(ctx, target, syncTarget, false)
}

// renew writes the Secret; keep leaves a token that is good.
func (p *Plan) renew(ctx context.Context, target *Target, syncTarget *edgev2alpha1.SyncTarget, keep bool) error {
	var has []byte
	if keep {
		var err error
		if has, err = p.Inventory.Credentials(ctx, syncTarget); err != nil {
			return err
		}
	}
	if target.DryRun {
		// A token cannot be asked for by way of trial.
		return p.Inventory.SetCredentials(ctx, syncTarget, has)
	}
	kubeconfig, err := target.Kubeconfig(ctx, p.Admin, has, p.Lifetime, p.Clock.Now())
	if err != nil {
		return err
	}
	return p.Inventory.SetCredentials(ctx, syncTarget, kubeconfig)
}

// Target returns the target's side of the plan.
func (p *Plan) Target(ctx context.Context) (*Target, error) {
	inventory, err := InventoryOf(ctx, p.Inventory.Client)
	if err != nil {
		return nil, err
	}
	return &Target{
		Identity: Identity{SyncTarget: p.Name, Inventory: inventory},
		Client:   p.TargetClient, DryRun: p.Inventory.DryRun, Report: p.Inventory.Report,
	}, nil
}

func (p *Plan) choose(ctx context.Context, target *Target, syncTarget *edgev2alpha1.SyncTarget) ([]rights.Resource, error) {
	granted, err := target.Granted(ctx)
	if err != nil {
		return nil, onTarget(err)
	}
	asked, err := p.resolve()
	if err != nil {
		return nil, err
	}
	resources, source, err := Choose(asked, syncTarget, granted)
	if err != nil {
		return nil, err
	}
	p.note(fmt.Sprintf("Rights for %d resources: %s.", len(resources), source))
	if !p.Rights.Escalate && grantsRights(resources) {
		p.note("Roles that grant more than the hub has, and bindings to them, will be refused by the target. Allow them with --allow-rbac-escalation.")
	}
	return resources, nil
}

func (p *Plan) note(text string) {
	if p.Note != nil {
		p.Note(text)
	}
}

func grantsRights(resources []rights.Resource) bool {
	for _, resource := range resources {
		if resource.Group == "rbac.authorization.k8s.io" && resource.Down {
			return true
		}
	}
	return false
}

// resolve completes the resources that were asked for by what the target serves.
func (p *Plan) resolve() ([]rights.Resource, error) {
	var resolved []rights.Resource
	for _, resource := range p.Resources {
		found, err := p.TargetClient.RESTMapper().ResourceFor(resource.GroupResource().WithVersion(""))
		switch {
		case err == nil:
			resource.Group, resource.Resource = found.Group, found.Resource
		case meta.IsNoMatchError(err) && resource.Group == "":
			return nil, fmt.Errorf("the target has no resource %q without a group: write it with its group, for example deployments.apps", resource.Resource)
		case meta.IsNoMatchError(err):
			resource.InstallsCRD = true
			p.note(fmt.Sprintf("The target does not serve %s: the hub is allowed to install its definition.", resource.GroupResource()))
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
