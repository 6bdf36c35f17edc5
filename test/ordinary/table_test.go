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

package ordinary

// verbs are the verbs of kubectl that change objects, wait for them or show them.
var verbs = []row{
	// Create.
	{name: "create", command: nothing},
	{name: "create generators", command: `kubectl create configmap made --from-literal=a=1 --from-literal=b=2
		kubectl create secret generic made --from-literal=a=1
		kubectl create secret docker-registry registry --docker-server=example.org --docker-username=u --docker-password=p
		kubectl create serviceaccount made
		kubectl create service clusterip made --tcp=80:8080
		kubectl create service nodeport outside --tcp=80:8080
		kubectl create ingress made --rule=made.example.org/=made:80
		kubectl create cronjob made --image=example.org/made --schedule='0 0 1 1 *'`},
	{name: "create roles", command: `kubectl create role made --verb=get,list --resource=configmaps && kubectl create rolebinding made --role=made --serviceaccount=$NAMESPACE:made`},
	{name: "create deployment", command: `kubectl create deployment made --image=example.org/made --replicas=2 --port=80`},
	{name: "create job", command: `kubectl create job made --image=example.org/made -- sleep 1d`},
	{name: "create twice", command: `kubectl create -f web.yaml`},
	{name: "create poddisruptionbudget", command: `kubectl create poddisruptionbudget made --selector=app=web --min-available=1`},
	{name: "create unserved", command: `echo '{apiVersion: v1, kind: PodTemplate, metadata: {name: made}}' | kubectl create -f -`, refusal: notServed},
	{name: "create dry run", command: `kubectl create deployment made --image=example.org/made --dry-run=server -o yaml`, prints: "image: example.org/made"},
	{name: "create and save config", setup: nothing, command: `kubectl create -f web.yaml --save-config`},
	{name: "run", command: `kubectl run made --image=example.org/made --port=80 --labels=a=b --restart=Never`},
	{name: "expose", command: `kubectl expose deployment web --name=exposed --port=80 --target-port=8080`},

	// Apply.
	{name: "apply", setup: nothing, command: `kubectl apply -f web.yaml`},
	{name: "apply twice", setup: `kubectl apply -f web.yaml`, command: `kubectl apply -f web.yaml`, refusal: losesItems},
	{name: "apply the next edition", setup: `kubectl apply -f web.yaml`, command: `kubectl apply -f web-2.yaml`, refusal: losesItems},
	{name: "apply a created object", command: `kubectl apply -f web-2.yaml`, refusal: losesItems},
	{name: "apply on the server", setup: nothing, command: `kubectl apply --server-side -f web.yaml`},
	{name: "apply the next edition on the server", setup: `kubectl apply --server-side -f web.yaml`, command: `kubectl apply --server-side -f web-2.yaml`},
	{name: "apply on the server after apply", setup: `kubectl apply -f web.yaml`, command: `kubectl apply --server-side -f web-2.yaml`},
	{name: "apply on the server with a conflict", setup: `kubectl apply --server-side -f web.yaml`, command: `kubectl apply --server-side --field-manager=another -f web-2.yaml`},
	{name: "apply on the server by force", setup: `kubectl apply --server-side -f web.yaml`, command: `kubectl apply --server-side --field-manager=another --force-conflicts -f web-2.yaml`},
	{name: "apply a dry run", command: `kubectl apply --server-side --dry-run=server --force-conflicts -f web-2.yaml`, prints: "server dry run"},
	{name: "apply and prune", setup: `kubectl create configmap obsolete --from-literal=a=b --save-config && kubectl apply -f web.yaml`,
		command: `kubectl apply -f web.yaml --prune --all --namespace=$NAMESPACE`, refusal: notServed},
	{name: "apply and prune listed kinds", setup: `kubectl create configmap obsolete --from-literal=a=b --save-config && kubectl apply -f web.yaml`,
		command: `kubectl apply -f web.yaml --prune --all --namespace=$NAMESPACE --prune-allowlist=core/v1/ConfigMap --prune-allowlist=apps/v1/Deployment`, refusal: losesItems},
	{name: "apply a set", setup: `cat web.yaml obsolete.yaml | KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset=web --namespace=$NAMESPACE -f -`,
		command: `KUBECTL_APPLYSET=true kubectl apply --server-side --prune --applyset=web --namespace=$NAMESPACE -f web-2.yaml`},

	// Replace, edit and patch.
	{name: "replace", command: `kubectl replace -f web-2.yaml`},
	{name: "replace by force", command: `kubectl replace --force -f web-2.yaml`},
	{name: "replace what was read", command: `kubectl get deployment web -o yaml | sed 's#main:1#main:2#' | kubectl replace -f -`},
	{name: "edit", command: `EDITOR="sed -i s#main:1#main:2#" kubectl edit deployment web`, refusal: inTheEditor},
	{name: "edit a service", command: `EDITOR="sed -i s#targetPort:.http#targetPort:\ 8081#" kubectl edit service web`, refusal: inTheEditor},
	{name: "edit a settings object", command: `EDITOR="sed -i s#hello#hi#" kubectl edit configmap settings`},
	{name: "patch strategic", command: `kubectl patch deployment web -p '{"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.org/main:2"}]}}}}'`, refusal: losesItems},
	{name: "patch strategic adds", command: `kubectl patch deployment web -p '{"spec": {"template": {"spec": {"containers": [{"name": "third", "image": "example.org/third"}]}}}}'`, refusal: losesItems},
	{name: "patch strategic deletes", command: `kubectl patch deployment web -p '{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "$patch": "delete"}]}}}}'`, refusal: losesItems},
	{name: "patch strategic a field", command: `kubectl patch deployment web -p '{"spec": {"minReadySeconds": 1}}'`},
	{name: "patch strategic a service", command: `kubectl patch service web -p '{"spec": {"ports": [{"port": 80, "targetPort": 8081}]}}'`, refusal: losesItems},
	{name: "patch strategic data", command: `kubectl patch configmap settings -p '{"data": {"greeting": "hi", "farewell": null}}'`},
	{name: "patch merge", command: `kubectl patch deployment web --type=merge -p '{"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.org/main:2"}]}}}}'`, refusal: losesItems},
	{name: "patch merge a field", command: `kubectl patch deployment web --type=merge -p '{"spec": {"minReadySeconds": 1, "template": {"metadata": {"annotations": {"example.org/scrape": null}}}}}'`},
	{name: "patch json", command: `kubectl patch deployment web --type=json -p '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.org/main:2"}, {"op": "remove", "path": "/spec/template/spec/containers/1"}]'`, refusal: losesItems},
	{name: "patch json with a failed test", command: `kubectl patch deployment web --type=json -p '[{"op": "test", "path": "/spec/replicas", "value": 9}]'`},

	// Set.
	{name: "set image", command: `kubectl set image deployment/web main=example.org/main:2`, refusal: losesItems},
	{name: "set image of all", command: `kubectl set image deployment/web '*=example.org/other:2'`, refusal: losesItems},
	{name: "set env", command: `kubectl set env deployment/web LEVEL=debug REGION-`, refusal: losesItems},
	{name: "set env of one", command: `kubectl set env deployment/web -c sidecar LEVEL=debug`, refusal: losesItems},
	{name: "set env from", command: `kubectl set env deployment/web --from=configmap/settings`, refusal: losesItems},
	{name: "set resources", command: `kubectl set resources deployment/web -c=main --limits=cpu=200m,memory=512Mi --requests=cpu=100m`, refusal: losesItems},
	{name: "set service account", command: `kubectl set serviceaccount deployment/web default`},
	{name: "set selector", command: `kubectl set selector service/web app=other`},
	{name: "set subject", setup: `kubectl create role made --verb=get --resource=pods && kubectl create rolebinding made --role=made --user=one`, command: `kubectl set subject rolebinding made --user=two`},

	// Metadata.
	{name: "label", command: `kubectl label deployment/web service/web tier=front`},
	{name: "label over", command: `kubectl label deployment/web app=other --overwrite && kubectl label deployment/web app-`},
	{name: "label all", command: `kubectl label deployments,services,configmaps --all tier=front`},
	{name: "annotate", command: `kubectl annotate deployment/web example.org/note=read example.org/more=too && kubectl annotate deployment/web example.org/more-`},

	// Scale and roll out.
	{name: "scale", command: `kubectl scale deployment/web --replicas=3`},
	{name: "scale if", command: `kubectl scale deployment/web --current-replicas=1 --replicas=2 && ! kubectl scale deployment/web --current-replicas=7 --replicas=9`},
	{name: "scale to zero", command: `kubectl scale deployment/web --replicas=0`},
	{name: "autoscale", command: `kubectl autoscale deployment/web --min=1 --max=3 --cpu=50%`},
	{name: "rollout restart", command: `kubectl rollout restart deployment/web && kubectl rollout status deployment/web --timeout=2m`, prints: "successfully rolled out"},
	{name: "rollout status", command: `kubectl rollout status deployment/web --timeout=2m`, prints: "successfully rolled out"},
	{name: "rollout pause", command: `kubectl rollout pause deployment/web`},
	{name: "rollout resume", setup: `kubectl create -f web.yaml && kubectl rollout pause deployment/web`, command: `kubectl rollout resume deployment/web`},
	{name: "rollout history", command: `kubectl rollout history deployment/web`},
	{name: "rollout undo", setup: `kubectl create -f web.yaml && kubectl rollout status deployment/web --timeout=2m && kubectl replace -f web-2.yaml && kubectl rollout status deployment/web --timeout=2m`,
		command: `kubectl rollout undo deployment/web`, refusal: `no rollout history found`},

	// Delete.
	{name: "delete", command: `kubectl delete -f web.yaml`},
	{name: "delete by label", setup: `kubectl create -f web.yaml && kubectl label service/web configmap/settings part=yes`, command: `kubectl delete services,configmaps -l part=yes`},
	{name: "delete all", command: `kubectl delete deployments,services,configmaps --all`},
	{name: "delete in the background", command: `kubectl delete deployment web --cascade=background && kubectl wait --for=delete deployment/web --timeout=2m`},
	{name: "delete in the foreground", command: `kubectl delete deployment web --cascade=foreground`},
	{name: "delete and orphan", withChildren: true, command: `kubectl delete deployment web --cascade=orphan`},
	{name: "delete at once", command: `kubectl delete deployment/web --grace-period=0 --force`},
	{name: "delete the absent", command: `kubectl delete deployment absent`},
	{name: "delete the absent quietly", command: `kubectl delete deployment absent --ignore-not-found`},

	// Watch, wait and show.
	{name: "diff of nothing", command: `kubectl apply --server-side -f web.yaml --force-conflicts && kubectl diff --server-side -f web.yaml`},
	{name: "diff", command: `kubectl diff --server-side --force-conflicts -f web-2.yaml || test $? = 1`, prints: `\+.*image: example.org/main:2`},
	{name: "diff on the client", setup: `kubectl apply -f web.yaml`, command: `kubectl diff -f web-2.yaml || test $? = 1`, prints: `\+.*image: example.org/main:2`, refusal: losesItems},
	{name: "wait", command: `kubectl wait deployment/web --for=condition=Available --timeout=2m`, prints: "condition met"},
	{name: "wait for a field", command: `kubectl wait deployment/web --for=jsonpath='{.status.readyReplicas}'=1 --timeout=2m`, prints: "condition met"},
	{name: "watch", command: `coproc kubectl get configmap settings --watch -o jsonpath='{.data.greeting}{"\n"}'
		read -r -u "${COPROC[0]}" first; kubectl patch configmap settings --type=merge -p '{"data": {"greeting": "hi"}}'
		read -r -u "${COPROC[0]}" second; kill $COPROC_PID; echo "$first, $second"`, prints: "hello, hi"},
	{name: "get all", command: `kubectl get all`, prints: `deployment.apps/web(.|\n)*service/web|service/web(.|\n)*deployment.apps/web`},
	{name: "get in wide and other forms", command: `kubectl get deployment web -o wide && kubectl get deploy -o name && kubectl get svc web -o jsonpath='{.spec.ports[*].name}'`, prints: `deployment.apps/web(.|\n)*http metrics`},
	{name: "describe", command: `kubectl describe service web && kubectl describe configmap settings`, prints: "greeting"},
	{name: "explain", command: `kubectl explain deployment.spec.template.spec.containers.image`, prints: "(?i)container image name"},
	{name: "explain all", command: `kubectl explain cronjob.spec --recursive`, prints: "schedule"},
	// kcp publishes exported APIs of the core group under another path than kubectl reads.
	{name: "explain the core group", command: `kubectl explain service.spec.ports`, prints: "(?i)ports that are exposed", refusal: "not found in OpenAPI schema"},
	{name: "api resources", command: `kubectl api-resources --namespaced -o name`, prints: "deployments.apps"},
	{name: "may I", command: `kubectl auth can-i create deployments`, prints: "yes"},
	{name: "events", command: `kubectl events`},
}

// charts are Helm's verbs.
var charts = []row{
	{name: "helm install", setup: nothing, command: `helm install shop shop`, prints: "STATUS: deployed"},
	{name: "helm upgrade a number", setup: `helm install shop shop`, command: `helm upgrade shop shop --set replicas=2`, prints: "STATUS: deployed"},
	{name: "helm upgrade an image", setup: `helm install shop shop`, command: `helm upgrade shop shop --set image=example.org/main:2`, refusal: losesItems},
	{name: "helm upgrade a list", setup: `helm install shop shop`, command: `helm upgrade shop shop --set-json 'variables=[{"name":"LEVEL","value":"debug"}]'`, refusal: losesItems},
	{name: "helm upgrade by force", setup: `helm install shop shop`, command: `helm upgrade --force shop shop --set image=example.org/main:2`},
	{name: "helm upgrade or install", setup: nothing, command: `helm upgrade --install shop shop --set replicas=2`, prints: "REVISION: 1"},
	{name: "helm rollback", setup: `helm install shop shop && helm upgrade shop shop --set replicas=2`, command: `helm rollback shop 1`, prints: "Rollback was a success"},
	{name: "helm uninstall", setup: `helm install shop shop`, command: `helm uninstall shop`, prints: "uninstalled"},
	{name: "helm list", setup: `helm install shop shop`, command: `helm list && helm status shop && helm get manifest shop`, prints: "deployed"},
	{name: "helm wait for jobs and the rest", setup: nothing, command: `helm install shop batch --wait --wait-for-jobs --timeout 2m`, prints: "STATUS: deployed"},
	{name: "helm template", setup: nothing, command: `helm template shop shop | kubectl apply --server-side -f - && kubectl rollout status deployment/shop --timeout=2m`, prints: "successfully rolled out"},
}
