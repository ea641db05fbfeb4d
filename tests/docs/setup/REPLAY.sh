# The recorded stream, a configuration in the place where replay looks for it, and a Lambda runtime in JavaScript.
cp examples/capture/orders.jsonl.gz .
cp examples/orders/sluice.json .
export OUT=out
cat >runtime.js <<'END'
const http = require("http");
const api = "http://" + process.env.AWS_LAMBDA_RUNTIME_API + "/2018-06-01/runtime/invocation/";
const agent = new http.Agent({ keepAlive: true });
const ask = (method, path, body) => new Promise((resolve, reject) => {
    const request = http.request(api + path, { method, agent }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.headers["lambda-runtime-aws-request-id"]));
    });
    request.on("error", reject);
    request.end(body);
});
(async () => {
    for (;;) {
        const id = await ask("GET", "next");
        await ask("POST", id + "/response", '{"batchItemFailures":[]}');
    }
})().catch(() => process.exit(0));
END
