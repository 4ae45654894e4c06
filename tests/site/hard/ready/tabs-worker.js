onconnect = () => {}
