// Four workers allocate 20,000 buffers each.
const {Worker, isMainThread, parentPort} = require('worker_threads');

if (isMainThread) {
	let sum = 0, left = 4;
	for (let i = 0; i < 4; i++) {
		new Worker(__filename).on('message', n => {
			sum += n;
			if (--left === 0)
				console.log(sum);
		});
	}
} else {
	const list = [];
	for (let i = 0; i < 20000; i++)
		list.push(Buffer.alloc(100, i & 255));
	parentPort.postMessage(list.reduce((n, b) => n + b[99], 0));
}
