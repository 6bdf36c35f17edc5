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

package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// maxDumpBytes bounds the files of a dump together, and maxFileBytes each of them.
	maxDumpBytes = 40 << 20
	maxFileBytes = 4 << 20
	// maxObjects bounds the objects of one kind, and maxMailboxes the mailboxes.
	maxObjects   = 500
	maxMailboxes = 20
	// logLines are the last lines of each container's log.
	logLines = 5000
)

// dump writes files for a bug report into a directory.
type dump struct {
	directory string
	left      int
}

// newDump creates the directory, which must not exist: the report must have nothing else in it.
func newDump(directory string) (*dump, error) {
	if err := os.Mkdir(directory, 0o700); err != nil {
		return nil, err
	}
	return &dump{directory, maxDumpBytes}, nil
}

// write writes a file that only the user can read. It cuts the content at the limits.
func (d *dump) write(name string, content []byte) error {
	if limit := min(maxFileBytes, d.left); len(content) > limit {
		content = append(bytes.Clone(content[:limit]), "\n# cut here\n"...)
	}
	d.left = max(d.left-len(content), 0)
	return os.WriteFile(filepath.Join(d.directory, name), content, 0o600)
}

// list writes the objects of a list that meet a condition, or all if it is nil, without the fields that a report must not have. If the list
// cannot be read, the file has the error.
func (d *dump) list(ctx context.Context, name string, from client.Reader, list client.ObjectList, isNeeded func(client.Object) bool, options ...client.ListOption) error {
	if err := from.List(ctx, list, append(options, client.Limit(maxObjects))...); err != nil {
		return d.write(name, fmt.Appendf(nil, "# cannot be listed: %s\n", redactText(cli.SanitizeLine(err.Error()))))
	}
	var content bytes.Buffer
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		if isNeeded != nil && !isNeeded(object) {
			return nil
		}
		fields, err := redactedObject(object)
		if err != nil {
			return err
		}
		manifest, err := yaml.Marshal(fields)
		content.WriteString("---\n" + cli.SanitizeLines(string(manifest)))
		return err
	})
	if list.GetContinue() != "" {
		fmt.Fprintf(&content, "# only the first %d objects\n", maxObjects)
	}
	return errors.Join(err, d.write(name, content.Bytes()))
}

// writeDump writes the files for a bug report.
func (o *checkOptions) writeDump(ctx context.Context, report *Report, config *rest.Config) error {
	files, err := newDump(o.dump)
	if err != nil {
		return err
	}
	defer redact.RegisterHub(config.BearerToken, config.Password)()
	found, err := redacted(report)
	if err != nil {
		return err
	}
	content, err := yaml.Marshal(found)
	if err != nil {
		return err
	}
	workspace, err := cli.ClientOf(config)
	if err != nil {
		return err
	}
	err = errors.Join(
		files.write("version.txt", []byte("kubectl-synchub "+cli.PluginVersion+"\n")),
		files.write("check.yaml", content),
		files.workspace(ctx, "workspace", workspace, &apisv1alpha2.APIBindingList{}, &edgev2alpha1.SyncTargetList{}, &edgev2alpha1.LocationList{}, &edgev2alpha1.EdgePlacementList{}, &edgev2alpha1.SinglePlacementSliceList{}),
		o.dumpMailboxes(ctx, files, workspace),
		o.dumpHosting(ctx, files),
	)
	if err == nil {
		fmt.Fprintf(o.ErrOut, "The files for a bug report are in %s. Read them before you send them.\n", cli.SanitizeLine(o.dump))
	}
	return err
}

// hubEvents selects the events that the hub writes. Events of users' programs, and events that come up from clusters, may have any content.
var hubEvents = client.MatchingFields{"reportingComponent": "synchub"}

// workspace writes lists of a workspace, and the hub's events there.
func (d *dump) workspace(ctx context.Context, prefix string, from client.Reader, lists ...client.ObjectList) (err error) {
	for _, list := range lists {
		_, kind, _ := strings.Cut(fmt.Sprintf("%T", list), ".")
		err = errors.Join(err, d.list(ctx, prefix+"-"+kind+".yaml", from, list, nil))
	}
	return errors.Join(err, d.list(ctx, prefix+"-EventList.yaml", from, &corev1.EventList{}, nil, hubEvents))
}

// dumpMailboxes writes the configs and events of the first mailboxes.
func (o *checkOptions) dumpMailboxes(ctx context.Context, files *dump, workspace client.Reader) (err error) {
	var syncTargets edgev2alpha1.SyncTargetList
	// If the list cannot be read, workspace-SyncTargetList.yaml has the error.
	_ = workspace.List(ctx, &syncTargets, client.Limit(maxMailboxes))
	for i := range syncTargets.Items {
		mailbox := syncTargets.Items[i].Status.Mailbox
		if mailbox == nil || mailbox.Cluster == "" {
			continue
		}
		reader, readerErr := o.ReaderIn(mailbox.Cluster)
		if readerErr != nil {
			return errors.Join(err, readerErr)
		}
		err = errors.Join(err, files.workspace(ctx, "mailbox-"+syncTargets.Items[i].Name, reader.Client,
			&edgev2alpha1.SyncerConfigList{}, &edgev2alpha1.EdgeSyncConfigList{}, &apisv1alpha2.APIBindingList{}))
	}
	return err
}

// dumpHosting writes what the hosting cluster has of the hub.
func (o *checkOptions) dumpHosting(ctx context.Context, files *dump) error {
	if !o.hosting.IsSet() {
		return nil
	}
	hosting, err := o.hostingCluster()
	if err != nil {
		return err
	}
	return files.hub(ctx, hosting, hosting.discovery.RESTClient(), o.hubNamespace)
}

// hub writes what a namespace has of the chart's objects: other objects there may be of anybody.
func (d *dump) hub(ctx context.Context, hosting client.Reader, server rest.Interface, namespace string) error {
	ofChart := client.MatchingLabels{"app.kubernetes.io/name": "synchub"}
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	err := errors.Join(
		d.list(ctx, "hosting-PublishedResourceList.yaml", hosting, &synchubv1alpha1.PublishedResourceList{}, nil),
		d.list(ctx, "hosting-DeploymentList.yaml", hosting, &deployments, nil, client.InNamespace(namespace), ofChart),
		d.list(ctx, "hosting-PodList.yaml", hosting, &pods, nil, client.InNamespace(namespace), ofChart),
	)
	isNeeded := func(object client.Object) bool { return isAboutHub(object.(*corev1.Event), deployments.Items) }
	err = errors.Join(err, d.list(ctx, "hosting-EventList.yaml", hosting, &corev1.EventList{}, isNeeded, client.InNamespace(namespace)))
	for i := range pods.Items {
		for _, container := range pods.Items[i].Spec.Containers {
			if container.Name == hubContainer {
				err = errors.Join(err, d.log(ctx, server, &pods.Items[i], container.Name))
			}
		}
	}
	return err
}

// ofDeployment matches what the names of a Deployment's ReplicaSets and Pods have after its name.
var ofDeployment = regexp.MustCompile(`^-[bcdfghjklmnpqrstvwxz2456789]{5,10}(?:-[bcdfghjklmnpqrstvwxz2456789]{5})?$`)

// isAboutHub reports whether an event is about the hub's Lease, or about a Deployment of the chart with its ReplicaSets and Pods.
func isAboutHub(event *corev1.Event, deployments []appsv1.Deployment) bool {
	about := event.InvolvedObject
	if about.Kind == "Lease" {
		return about.Name == leaseName
	}
	return slices.ContainsFunc(deployments, func(deployment appsv1.Deployment) bool {
		suffix, isPrefix := strings.CutPrefix(about.Name, deployment.Name)
		switch about.Kind {
		case "Deployment":
			return isPrefix && suffix == ""
		case "ReplicaSet", "Pod":
			return isPrefix && ofDeployment.MatchString(suffix)
		default:
			return false
		}
	})
}

// log writes the end of a container's log.
func (d *dump) log(ctx context.Context, server rest.Interface, pod *corev1.Pod, container string) error {
	name := fmt.Sprintf("log-%s-%s.txt", pod.Name, container)
	stream, err := server.Get().AbsPath("/api/v1/namespaces", pod.Namespace, "pods", pod.Name, "log").
		Param("container", container).Param("tailLines", strconv.Itoa(logLines)).Param("limitBytes", strconv.Itoa(maxFileBytes)).Stream(ctx)
	if err != nil {
		return d.write(name, fmt.Appendf(nil, "cannot be read: %s\n", redactText(cli.SanitizeLine(err.Error()))))
	}
	defer func() { _ = stream.Close() }()
	content, err := io.ReadAll(io.LimitReader(stream, maxFileBytes))
	if err != nil {
		return err
	}
	return d.write(name, []byte(redactText(string(content))))
}
