"""moto's server, as `python -m moto.server` is. Half of the processor time of a small request went into what is the same each time:
the list of its folders, the errors of a service, a line of its log, and a packet for the headers alone."""
import moto.backends
import moto.core.errors
from moto.server import main
from werkzeug.serving import WSGIRequestHandler

answer = WSGIRequestHandler.run_wsgi
folders = list(moto.backends.list_of_moto_modules())
errors = moto.core.errors.ErrorLookupFactory()


def run_wsgi(self):
    self.wfile.flush()  # "100 Continue", for which the client waits
    answer(self)


moto.backends.list_of_moto_modules = lambda: folders
moto.core.errors.ErrorLookupFactory = lambda: errors
WSGIRequestHandler.log_request = lambda *_: None
WSGIRequestHandler.wbufsize = 1 << 16
WSGIRequestHandler.run_wsgi = run_wsgi
main()
